#include <cstdio>

#include "probe/snapshot/atomic_file.h"
#include "replay/cli/commands.h"
#include "replay/lab/shelter.h"
#include "replay/report/report.h"
#include "replay/verdict/json.h"

namespace nanquest::cli {
namespace {

/// A report that can't be written is a warning, not a failure: the verdict is on stdout.
void keep(const Status& status) {
  if (!status) std::fprintf(stderr, "nanquest-replay: warning: %s\n", status.error().text().c_str());
}

void write_files_beside(const Common& common, const Case& c, const Verdict& verdict) {
  const std::string stem = stem_of(common.snapshot);
  const Status json = write_file_atomically(stem + ".json", to_json(verdict));
  keep(json);
  if (!json) return;  // the other two would fail for the same reason, and say so twice more
  keep(write_file_atomically(stem + ".md", to_markdown(verdict)));
  keep(write_replay_file(c, stem + ".replay.h5"));
}

/// A search that has less time than this tries nothing.
constexpr double kNoTime = 1e-3;

int diagnosed(const Common& common, const DiagnoseArguments& arguments, const Doing& doing) {
  auto replayer = open_snapshot(common);
  if (!replayer) return fail(replayer.error());
  const auto device = device_for(common, replayer->doc());
  if (!device) return fail(device.error());
  Progressor progress(common.quiet);
  const auto say = [&](const std::string& what) {
    doing(what);
    progress.say(what);
  };
  say("verifying: the step as recorded");
  const Reproduction reproduction = reproduction_of(verify(*replayer, *device));
  const StopOnInterrupt stop;
  say("who is to blame");
  const Case c = make_case(*replayer, {.seconds = arguments.budget});
  DiagnoseOptions options;
  options.try_fixes = !arguments.no_fixes;
  options.progress = say;
  const Verdict verdict = diagnose(c, reproduction, common.snapshot, options);
  progress.clear();
  if (!arguments.no_files) write_files_beside(common, c, verdict);
  const std::string text = common.json ? to_json(verdict)
                           : arguments.brief
                               ? to_brief(verdict)
                               : to_text(verdict, {.colour = stdout_has_colour(), .width = stdout_width()});
  std::fputs(text.c_str(), stdout);
  if (!common.json && !arguments.brief && !arguments.no_files && verdict.found)
    std::printf("\nfiles       %s.{json,md,replay.h5}\n", stem_of(common.snapshot).c_str());
  if (Lab::stopped()) return kInterrupted;
  return static_cast<int>(verdict.found || verdict.unseen.any() ? ExitCode::finding : ExitCode::ok);
}

}  // namespace

int diagnose_command(const Common& common, const DiagnoseArguments& arguments) {
  return sheltered([&](const Doing& doing) { return diagnosed(common, arguments, doing); },
                   [&](const std::string& crash) {
                     std::fprintf(stderr,
                                  "nanquest-replay: a kernel crashed (%s); what follows was found without "
                                  "trying anything\n",
                                  crash.c_str());
                     DiagnoseArguments plain = arguments;
                     plain.no_fixes = true;
                     plain.budget = kNoTime;
                     return diagnosed(common, plain, [](const std::string&) {});
                   });
}

}  // namespace nanquest::cli
