// nanquest-replay collect DIR… -o OUT: merges what a run left on several nodes into one run directory.
#include "probe/snapshot/collect.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "replay/cli/commands.h"

namespace nanquest::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string collected_json(const Collected& all) {
  Json steps = Json::array();
  for (const CollectedStep& step : all.steps)
    steps.push_back({{"step", step.step},
                     {"recording", step.recording},
                     {"files", step.files},
                     {"rows", step.rows},
                     {"missing", step.missing}});
  const Json j = {{"run_dir", all.run_dir}, {"world_size", all.world_size},
                  {"files", all.files},     {"bytes", all.bytes},
                  {"steps", steps},         {"notes", all.notes}};
  return j.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

int collect_command(const CollectArguments& arguments) {
  const Result<Collected> all = collect_run(arguments.from, arguments.output);
  if (!all) return fail(all.error());
  if (arguments.json) {
    std::fputs(collected_json(*all).c_str(), stdout);
    return static_cast<int>(ExitCode::ok);
  }
  std::printf("%s: %llu files, %s, of a run of %d process%s\n", all->run_dir.c_str(),
              static_cast<unsigned long long>(all->files), size_text(all->bytes).c_str(), all->world_size,
              all->world_size == 1 ? "" : "es");
  for (const CollectedStep& step : all->steps)
    std::printf("%s\n", step_in_words(step, all->world_size).c_str());
  for (const std::string& note : all->notes) std::printf("%s\n", note.c_str());
  return static_cast<int>(ExitCode::ok);
}

}  // namespace nanquest::cli
