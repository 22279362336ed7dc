#include <cstdio>
#include <nlohmann/json.hpp>

#include "replay/cli/commands.h"
#include "replay/verdict/sentences.h"

namespace nanquest::cli {

int verify_command(const Common& common) {
  auto replayer = open_snapshot(common);
  if (!replayer) return fail(replayer.error());
  const auto device = device_for(common, replayer->doc());
  if (!device) return fail(device.error());
  const VerifyResult r = verify(*replayer, *device);
  const Reproduction proof = reproduction_of(r);
  const Agreement agreement = proof.agreement();
  const bool same = agreement == Agreement::bit_for_bit || agreement == Agreement::within_bounds;
  const SnapshotDoc& doc = replayer->doc();
  const OpRow* first =
      r.first_mismatch == kNone ? nullptr : &doc.ops[static_cast<std::size_t>(r.first_mismatch)];
  if (common.json) {
    nlohmann::ordered_json j = {{"bit_exact", r.bit_exact},
                                {"agreement", word(agreement)},
                                {"recorded_on", r.recorded_on},
                                {"replayed_on", r.replayed_on},
                                {"basis", r.basis},
                                {"outputs_compared", r.outputs_compared},
                                {"mismatched", r.mismatched},
                                {"opaque_ops", r.opaque_ops},
                                {"failed_ops", r.failed_ops},
                                {"first_mismatch", nullptr},
                                {"differences", r.differences},
                                {"seconds", r.seconds}};
    if (r.elsewhere) j["elsewhere"] = {{"bound", r.bound}, {"distance", r.distance}, {"outside", r.outside}};
    if (first) j["first_mismatch"] = r.first_mismatch;
    std::printf("%s\n", j.dump(2).c_str());
    return static_cast<int>(same ? ExitCode::ok : ExitCode::finding);
  }
  std::printf("%s: %lld outputs compared, %lld differ, %lld ops could not be run again, %d failed (%.2f s)\n",
              r.bit_exact ? "bit-exact"
              : same      ? "within bounds"
                          : "NOT bit-exact",
              static_cast<long long>(r.outputs_compared), static_cast<long long>(r.mismatched),
              static_cast<long long>(r.opaque_ops), r.failed_ops, r.seconds);
  if (first) std::printf("first difference: op %d, %s\n", r.first_mismatch, first->name.c_str());
  if (r.elsewhere) std::printf("%s\n", reproduction_text(proof).c_str());
  for (const std::string& line : r.differences) std::printf("not the same here: %s\n", line.c_str());
  return static_cast<int>(same ? ExitCode::ok : ExitCode::finding);
}

}  // namespace nanquest::cli
