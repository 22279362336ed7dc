// nanquest-replay diff A B: two recordings of one step, or two runs; where they part, and why.
#include "replay/diff/differ.h"

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "probe/snapshot/atomic_file.h"
#include "replay/cause/region_alone.h"
#include "replay/cli/commands.h"
#include "replay/diff/over_ranks.h"
#include "replay/diff/runs.h"

namespace nanquest::cli {
namespace {

/// One step on one rank, the other on several.
Result<diff::RankFiles> ranks_of(const DiffArguments& arguments) {
  if (!std::filesystem::is_directory(arguments.a) || !std::filesystem::is_directory(arguments.b))
    return diff::RankFiles{};
  return diff::files_over_ranks(arguments.a, arguments.b,
                                arguments.step < 0 ? std::nullopt : std::optional(arguments.step));
}

Result<std::vector<Replayer>> opened(const std::vector<std::string>& files, const diff::Settings& settings) {
  std::vector<Replayer> steps;
  for (const std::string& file : files) {
    settings.say("reading " + file);
    Common one;
    one.snapshot = file;
    auto replayer = open_snapshot(one);
    if (!replayer) return replayer.error();
    steps.push_back(std::move(replayer).value());
  }
  return steps;
}

Result<diff::Report> of_files(const std::string& a, const std::string& b, const diff::Settings& settings) {
  const auto steps = opened({a, b}, settings);
  if (!steps) return steps.error();
  auto report = diff::compare_steps(steps->front(), steps->back(), settings);
  if (report) report->file_a = a, report->file_b = b;
  return report;
}

/// Whether the first difference is what other ranks sent: it is made on one of them.
bool came_from_others(const diff::Report& report) {
  return !report.findings.empty() && report.findings.front().kind == diff::Kind::ranks;
}

/// Two runs of the same ranks, each compared with its own until one makes a difference itself.
Result<diff::Report> of_runs(const DiffArguments& arguments, const diff::Settings& settings) {
  const auto step = arguments.step < 0 ? std::nullopt : std::optional(arguments.step);
  const auto ranks = diff::ranks_of_both(arguments.a, arguments.b, step);
  if (!ranks) return ranks.error();
  std::optional<diff::Report> told;
  std::vector<std::int32_t> alike, differ;
  for (const std::int32_t rank : *ranks) {
    auto pair = diff::compare_runs(arguments.a, arguments.b, step, rank);
    if (!pair) return pair.error();
    auto report = of_files(pair->a, pair->b, settings);
    if (!report) return report;
    report->runs = std::move(pair->runs);
    (report->alike() ? alike : differ).push_back(rank);
    const bool made_here = !report->alike() && !came_from_others(*report);
    if (!told || made_here || (told->alike() && !report->alike())) told = std::move(report).value();
    if (made_here) break;
  }
  told->runs->alike = std::move(alike), told->runs->differ = std::move(differ);
  return std::move(*told);
}

/// Two files, or two run directories.
Result<diff::Report> of_two(const DiffArguments& arguments, const diff::Settings& settings) {
  const bool run_a = std::filesystem::is_directory(arguments.a),
             run_b = std::filesystem::is_directory(arguments.b);
  if (run_a && run_b) return of_runs(arguments, settings);
  if (run_a || run_b)
    return Error{ErrorCode::usage,
                 arguments.a + " and " + arguments.b + ": one is a directory, the other is not",
                 "give two files or two run directories"};
  return of_files(arguments.a, arguments.b, settings);
}

Result<diff::Report> of_ranks(const DiffArguments& arguments, const diff::RankFiles& files,
                              const diff::Settings& settings) {
  const bool a_is_many = files.a.size() > 1;
  const auto one = opened(a_is_many ? files.b : files.a, settings),
             many = opened(a_is_many ? files.a : files.b, settings);
  if (!one) return one.error();
  if (!many) return many.error();
  const auto ranks = static_cast<std::size_t>(many->front().doc().world_size);
  if (one->front().doc().world_size != 1 || many->size() != ranks)
    return Error{ErrorCode::usage,
                 "files of all ranks are needed, and a run of one rank to compare them with",
                 "nanquest collect brings the files of several machines together"};
  auto report = diff::compare_over_ranks(one->front(), *many, a_is_many, settings);
  if (!report) return report;
  report->file_a = arguments.a, report->file_b = arguments.b;
  return report;
}

int compared(const DiffArguments& arguments, const Doing& tell) {
  Progressor progress(arguments.quiet);
  diff::Settings settings;
  settings.say = saying(tell, progress);
  settings.open_region = region_alone;
  const auto ranks = ranks_of(arguments);
  if (!ranks) return fail(ranks.error());
  const auto report = ranks->of_many() ? of_ranks(arguments, *ranks, settings) : of_two(arguments, settings);
  progress.clear();
  if (!report) return fail(report.error());
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
