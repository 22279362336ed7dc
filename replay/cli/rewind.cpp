// nanquest-replay rewind: runs the steps on a snapshot's tape again, from its anchor up to the incident, and
// then with one thing changed at a time.
#include "replay/rewind/rewind.h"

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>

#include "probe/snapshot/atomic_file.h"
#include "probe/snapshot/reader.h"
#include "replay/cli/commands.h"
#include "replay/history/growth.h"
#include "replay/verdict/sentences.h"

namespace nanquest::cli {
namespace {

/// The result of a rehearsal with the program itself is worth more, and stays.
bool may_write(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return true;
  const Result<std::string> text = read_whole_file(path);
  const auto there = text ? rehearsal_from_json(*text) : Result<Rehearsal>(text.error());
  return there && there->again;
}

/// Whether the unchanged steps reach the incident.
struct Check {
  VerifyResult result;
  bool reached = false;
  Agreement agreement = Agreement::not_compared;
  std::int64_t first = 0, last = 0;
  std::optional<std::int64_t> differs_in = {};  ///< step
  std::string differs_at = {};                  ///< op
};

nlohmann::ordered_json json_of(const Check& c, std::size_t ops) {
  nlohmann::ordered_json j = {{"first_step", c.first},
                              {"last_step", c.last},
                              {"ops", ops},
                              {"reached", c.reached},
                              {"agreement", word(c.agreement)},
                              {"recorded_on", c.result.recorded_on},
                              {"replayed_on", c.result.replayed_on},
                              {"outputs_compared", c.result.outputs_compared},
                              {"mismatched", c.result.mismatched},
                              {"failed_ops", c.result.failed_ops},
                              {"first_mismatch", nullptr},
                              {"differences", c.result.differences},
                              {"seconds", c.result.seconds}};
  if (c.differs_in)
    j["first_mismatch"] = {{"step", *c.differs_in}, {"op", c.result.first_mismatch}, {"name", c.differs_at}};
  return j;
}

void print(const Check& c) {
  const std::string range = c.first == c.last
                                ? "step " + std::to_string(c.last)
                                : "steps " + std::to_string(c.first) + " to " + std::to_string(c.last);
  const VerifyResult& r = c.result;
  if (c.reached && c.agreement == Agreement::within_bounds)
    std::printf(
        "%s run again: the incident is reached within bounds (%lld of %lld outputs bit for bit, the others "
        "at "
        "most %.2g off; recorded on %s, replayed on %s; %.2f s)\n",
        range.c_str(), static_cast<long long>(r.outputs_compared - r.mismatched),
        static_cast<long long>(r.outputs_compared), r.distance, r.recorded_on.c_str(), r.replayed_on.c_str(),
        r.seconds);
  else if (c.reached)
    std::printf("%s run again: the incident is reached bit for bit (%lld outputs compared, %.2f s)\n",
                range.c_str(), static_cast<long long>(r.outputs_compared), r.seconds);
  else if (c.agreement == Agreement::not_compared)
    std::printf("%s run again: nothing that they left is known, so nothing can be said of them (%.2f s)\n",
                range.c_str(), r.seconds);
  else
    std::printf(
        "%s run again: the incident is NOT reached bit for bit (%lld of %lld outputs differ, %d ops failed, "
        "%.2f s): no root can be told from this tape\n",
        range.c_str(), static_cast<long long>(r.mismatched), static_cast<long long>(r.outputs_compared),
        r.failed_ops, r.seconds);
  if (c.differs_in)
    std::printf("first difference: step %lld, op %d, %s\n", static_cast<long long>(*c.differs_in),
                r.first_mismatch, c.differs_at.c_str());
  for (const std::string& line : r.differences) std::printf("not the same here: %s\n", line.c_str());
}

Result<Check> check(const Rewind& rewind, c10::Device device) {
  const auto verified = rewind.verify(device);
  if (!verified) return verified.error();
  Check c{.result = *verified};
  c.agreement = reproduction_of(c.result).agreement();
  // Another device rounds differently; within bounds and with the same NaN and Inf it is the same incident.
  c.reached = c.agreement == Agreement::bit_for_bit || c.agreement == Agreement::within_bounds;
  c.first = rewind.step_of(0);
  c.last = rewind.steps().empty() ? c.first : rewind.steps().back().step;
  if (c.result.first_mismatch != kNone) {
    c.differs_in = rewind.step_of(c.result.first_mismatch);
    c.differs_at = rewind.trace().ops[static_cast<std::size_t>(c.result.first_mismatch)].name;
  }
  return c;
}

}  // namespace

int rewind_command(const Common& common, const RewindArguments& arguments) {
  auto file = SnapshotReader::open(common.snapshot);
  if (!file) return fail(file.error());
  auto rewind = Rewind::open(*file);
  if (!rewind) return fail(rewind.error());
  const auto device = device_for(common, rewind->trace());
  if (!device) return fail(device.error());
  const auto checked = check(*rewind, *device);
  if (!checked) return fail(checked.error());
  nlohmann::ordered_json j = json_of(*checked, rewind->trace().ops.size());
  if (!common.json) print(*checked);
  if (arguments.only_check || !checked->reached) {
    if (common.json) std::printf("%s\n", j.dump(2).c_str());
    return static_cast<int>(checked->reached ? ExitCode::ok : ExitCode::finding);
  }
  std::optional<Rehearsal> rehearsal;
  {
    Progressor progress(common.quiet);
    auto tried = rewind->try_changes(
        {.changes = arguments.changes, .placebos = arguments.placebos, .growth = weights_grew(file->doc())},
        *device, [&](const std::string& what) { progress.say(what); });
    progress.clear();
    if (!tried) return fail(tried.error());
    rehearsal = std::move(tried).value();
  }
  const std::string path = rehearsal_path(common.snapshot);
  const bool cured = rehearsal->root && !rehearsal->root->change.empty();
  if (common.json) {
    j["rehearsal"] = nlohmann::ordered_json::parse(to_json(*rehearsal));
    std::printf("%s\n", j.dump(2).c_str());
  } else {
    std::printf("\n%s", rehearsal_text(*rehearsal).c_str());
  }
  if (!arguments.no_file && may_write(path)) {
    if (Status s = write_file_atomically(path, to_json(*rehearsal)); !s)
      return fail({s.error().code, s.error().message, "--no-file only prints it"});
    if (!common.quiet) std::fprintf(stderr, "written: %s\n", path.c_str());
  } else if (!arguments.no_file) {
    std::fprintf(stderr, "kept: %s holds what the program itself was rehearsed with\n", path.c_str());
  }
  return static_cast<int>(cured ? ExitCode::ok : ExitCode::finding);
}

}  // namespace nanquest::cli
