// nanquest-replay rewind: the steps on a snapshot's tape once more, from its anchor up to the incident.
#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "probe/snapshot/reader.h"
#include "replay/cli/commands.h"
#include "replay/verdict/sentences.h"

namespace nanquest::cli {
namespace {

Result<Replayer> replayer_of(const SnapshotReader& file, SnapshotDoc trace) {
  std::map<std::string, at::Tensor> data;
  const auto tensors = file.tensors();
  if (!tensors) return tensors.error();
  for (const TensorInfo& tensor : *tensors) {
    if (!tensor.path.starts_with(kTapePrefix)) continue;
    auto read = read_as_tensor(file, tensor.path);
    if (!read) return read.error();
    data.emplace(tensor.path, std::move(read).value());
  }
  auto made = Replayer::from_memory(std::move(trace), std::move(data));
  if (!made) return Error{ErrorCode::bad_file, file.path() + ": its tape: " + made.error().message, ""};
  return made;
}

/// The step that `op` belongs to; what ran after an update is the next one's.
std::int64_t step_of(const std::vector<TapeStep>& steps, std::int32_t op, std::int64_t last) {
  const auto found = std::find_if(steps.begin(), steps.end(), [&](const TapeStep& step) {
    return step.end == kNone ? op < step.gate : op < step.end;
  });
  return found == steps.end() ? last : found->step;
}

}  // namespace

int rewind_command(const Common& common) {
  auto file = SnapshotReader::open(common.snapshot);
  if (!file) return fail(file.error());
  auto tape = file->read_tape();
  if (!tape) return fail(tape.error());
  tape->trace.environment = file->doc().environment;
  const std::vector<TapeStep>& steps = tape->steps;
  const std::int64_t last = steps.empty() ? file->doc().step : std::max(file->doc().step, steps.back().step);
  const std::int64_t first = steps.empty() ? last : steps.front().step;
  auto replayer = replayer_of(*file, std::move(tape->trace));
  if (!replayer) return fail(replayer.error());
  const auto device = device_for(common, replayer->doc());
  if (!device) return fail(device.error());
  const VerifyResult r = verify(*replayer, *device);
  const Agreement agreement = reproduction_of(r).agreement();
  const bool reached = agreement == Agreement::bit_for_bit;
  const ExitCode code = reached ? ExitCode::ok : ExitCode::finding;
  const OpRow* differs =
      r.first_mismatch == kNone ? nullptr : &replayer->doc().ops[static_cast<std::size_t>(r.first_mismatch)];
  const std::int64_t where = differs ? step_of(steps, r.first_mismatch, last) : last;
  if (common.json) {
    nlohmann::ordered_json j = {{"first_step", first},
                                {"last_step", last},
                                {"ops", replayer->doc().ops.size()},
                                {"reached", reached},
                                {"agreement", word(agreement)},
                                {"recorded_on", r.recorded_on},
                                {"replayed_on", r.replayed_on},
                                {"outputs_compared", r.outputs_compared},
                                {"mismatched", r.mismatched},
                                {"failed_ops", r.failed_ops},
                                {"first_mismatch", nullptr},
                                {"differences", r.differences},
                                {"seconds", r.seconds}};
    if (differs) j["first_mismatch"] = {{"step", where}, {"op", r.first_mismatch}, {"name", differs->name}};
    std::printf("%s\n", j.dump(2).c_str());
    return static_cast<int>(code);
  }
  const std::string range = first == last ? "step " + std::to_string(last)
                                          : "steps " + std::to_string(first) + " to " + std::to_string(last);
  if (reached)
    std::printf("%s run again: the incident is reached bit for bit (%lld outputs compared, %.2f s)\n",
                range.c_str(), static_cast<long long>(r.outputs_compared), r.seconds);
  else if (agreement == Agreement::not_compared)
    std::printf("%s run again: nothing that they left is known, so nothing can be said of them (%.2f s)\n",
                range.c_str(), r.seconds);
  else
    std::printf(
        "%s run again: the incident is NOT reached bit for bit (%lld of %lld outputs differ, %d ops failed, "
        "%.2f s): no root can be told from this tape\n",
        range.c_str(), static_cast<long long>(r.mismatched), static_cast<long long>(r.outputs_compared),
        r.failed_ops, r.seconds);
  if (differs)
    std::printf("first difference: step %lld, op %d, %s\n", static_cast<long long>(where), r.first_mismatch,
                differs->name.c_str());
  for (const std::string& line : r.differences) std::printf("not the same here: %s\n", line.c_str());
  return static_cast<int>(code);
}

}  // namespace nanquest::cli
