// nanquest-replay diff A B: two recordings of one step, where they part, and why.
#include "replay/diff/differ.h"

#include <cstdio>

#include "replay/cli/commands.h"

namespace nanquest::cli {
namespace {

int compared(const DiffArguments& arguments, const Doing& tell) {
  Progressor progress(arguments.quiet);
  const auto say = saying(tell, progress);
  std::vector<Replayer> steps;
  for (const std::string& file : {arguments.a, arguments.b}) {
    say("reading " + file);
    Common one;
    one.snapshot = file;
    auto replayer = open_snapshot(one);
    if (!replayer) return fail(replayer.error());
    steps.push_back(std::move(replayer).value());
  }
  diff::Settings settings;
  settings.say = say;
  auto report = diff::compare_steps(steps[0], steps[1], settings);
  progress.clear();
  if (!report) return fail(report.error());
  report->file_a = arguments.a, report->file_b = arguments.b;
  std::fputs((arguments.json ? diff::to_json(*report) : diff::to_text(*report, arguments.full)).c_str(),
             stdout);
  return static_cast<int>(report->alike() ? ExitCode::ok : ExitCode::finding);
}

}  // namespace

int diff_command(const DiffArguments& arguments) {
  return sheltered([&](const Doing& tell) { return compared(arguments, tell); },
                   [&](const std::string& crash) {
                     std::fprintf(stderr, "nanquest-replay: a kernel crashed (%s)\n", crash.c_str());
                     return static_cast<int>(ExitCode::internal);
                   });
}

}  // namespace nanquest::cli
