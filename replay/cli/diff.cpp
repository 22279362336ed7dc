// nanquest-replay diff A B: two recordings of one step, or two runs; where they part, and why.
#include "replay/diff/differ.h"

#include <cstdio>
#include <filesystem>
#include <optional>

#include "probe/snapshot/atomic_file.h"
#include "replay/cli/commands.h"
#include "replay/diff/runs.h"

namespace nanquest::cli {
namespace {

/// The files to be compared.
Result<diff::RunPair> files_of(const DiffArguments& arguments) {
  const bool run_a = std::filesystem::is_directory(arguments.a),
             run_b = std::filesystem::is_directory(arguments.b);
  if (run_a && run_b)
    return diff::compare_runs(arguments.a, arguments.b,
                              arguments.step < 0 ? std::nullopt : std::optional(arguments.step));
  if (run_a || run_b)
    return Error{ErrorCode::usage,
                 arguments.a + " and " + arguments.b + ": one is a directory, the other is not",
                 "give two files or two run directories"};
  return diff::RunPair{arguments.a, arguments.b, {}};
}

int compared(const DiffArguments& arguments, const Doing& tell) {
  Progressor progress(arguments.quiet);
  const auto say = saying(tell, progress);
  const auto files = files_of(arguments);
  if (!files) return fail(files.error());
  std::vector<Replayer> steps;
  for (const std::string& file : {files->a, files->b}) {
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
  report->file_a = files->a, report->file_b = files->b;
  if (!files->runs.steps.empty()) report->runs = files->runs;
  if (!arguments.html.empty())
    if (const Status written = write_file_atomically(arguments.html, diff::to_html(*report)); !written)
      return fail(written.error());
  std::fputs(
      (arguments.json ? diff::to_json(*report, arguments.full) : diff::to_text(*report, arguments.full))
          .c_str(),
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
