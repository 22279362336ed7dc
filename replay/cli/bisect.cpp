#include <cstdio>
#include <nlohmann/json.hpp>

#include "probe/trace/samples.h"
#include "replay/cause/samples.h"
#include "replay/cli/commands.h"

namespace nanquest::cli {
namespace {

constexpr int kMaxRuns = 400;

int bisect_samples_command(const Common& common, const Case& c) {
  const SampleBisection b = bisect_samples(c, kMaxRuns);
  if (common.json) {
    const nlohmann::ordered_json j = {{"what", "samples"},  {"batch", b.batch}, {"donor", b.donor},
                                      {"poison", b.poison}, {"runs", b.runs},   {"note", b.note}};
    std::printf("%s\n", j.dump(2).c_str());
  } else if (!b.note.empty()) {
    std::printf("%s (%d replays)\n", b.note.c_str(), b.runs);
  } else {
    std::printf("with these samples replaced by sample %lld the step is finite:",
                static_cast<long long>(b.donor));
    for (std::int64_t s : b.poison) {
      std::printf(" %lld", static_cast<long long>(s));
      if (const std::string id = sample_id(c.doc(), s); !id.empty()) std::printf(" (%s)", id.c_str());
    }
    std::printf("; leaving out any one of them brings the failure back (%d replays)\n", b.runs);
  }
  return static_cast<int>(ExitCode::finding);
}

int bisect_modules_command(const Common& common, const Case& c) {
  const ModuleBisection b = bisect_modules(c, kMaxRuns);
  if (common.json) {
    const nlohmann::ordered_json j = {{"what", "modules"},
                                      {"precision", b.precision},
                                      {"finite_with_all", b.finite_with_all},
                                      {"modules", b.modules},
                                      {"runs", b.runs}};
    std::printf("%s\n", j.dump(2).c_str());
  } else if (!b.finite_with_all) {
    std::printf("not finite even with every module in %s: precision is not the way out\n",
                b.precision.c_str());
  } else {
    std::printf("finite with the ops of these modules in %s (%d replays):\n", b.precision.c_str(), b.runs);
    for (const std::string& path : b.modules)
      std::printf("  %s\n", path.empty() ? "(outside any module)" : path.c_str());
  }
  return static_cast<int>(ExitCode::finding);
}

}  // namespace

int bisect_command(const Common& common, const std::string& what) {
  auto replayer = open_snapshot(common);
  if (!replayer) return fail(replayer.error());
  const Case c = make_case(*replayer);
  if (c.culprit().value.empty()) {
    std::printf("nothing harmful in this step: nothing to bisect\n");
    return static_cast<int>(ExitCode::ok);
  }
  return what == "samples" ? bisect_samples_command(common, c) : bisect_modules_command(common, c);
}

}  // namespace nanquest::cli
