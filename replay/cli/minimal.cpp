// nanquest-replay minimal SNAPSHOT -o OUT: the smallest copy that gives the same verdict.
#include "replay/share/minimal.h"

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "probe/snapshot/sharing.h"
#include "replay/cli/commands.h"
#include "replay/lab/shelter.h"

namespace nanquest::cli {
namespace {

namespace fs = std::filesystem;

void print(const Common& common, const MinimalArguments& arguments, const Minimal& found,
           const std::string& verdict) {
  const std::uint64_t bytes = fs::file_size(arguments.output), was = fs::file_size(common.snapshot);
  if (common.json) {
    const nlohmann::ordered_json j = {
        {"output", arguments.output}, {"bytes", bytes},         {"bytes_before", was}, {"verdict", verdict},
        {"left_out", found.left_out}, {"needed", found.needed}, {"tries", found.tries}};
    std::printf("%s\n", j.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
    return;
  }
  std::printf("%s: %s, the original has %s\n", arguments.output.c_str(), size_text(bytes).c_str(),
              size_text(was).c_str());
  std::printf("verdict     %s: the same, diagnosed on the new file\n", verdict.c_str());
  const auto list = [](const char* label, const std::vector<std::string>& lines) {
    for (std::size_t i = 0; i < lines.size(); ++i)
      std::printf("%-11s %s\n", i ? "" : label, lines[i].c_str());
  };
  list("left out", found.left_out);
  list("needed", found.needed);
  std::printf("tries       %d of at most %d%s\n", found.tries, arguments.tries,
              Lab::stopped() ? ", then stopped" : "");
}

Error changed(const std::string& what, const char* hint) {
  return {ErrorCode::unsupported, "nothing written: " + what, hint};
}

int minimised(const Common& common, const MinimalArguments& arguments, const Doing& doing) {
  auto replayer = open_snapshot(common);
  if (!replayer) return fail(replayer.error());
  Progressor progress(common.quiet);
  const auto say = saying(doing, progress);
  const StopOnInterrupt stop;
  say("the file as it is, diagnosed");
  const Judged before = judge_step(*replayer, common.snapshot, arguments.budget, {});
  if (Lab::stopped()) return kInterrupted;
  progress.clear();
  if (!before.verdict.found)
    return fail(changed(common.snapshot + " holds nothing harmful, so there is no verdict to keep", ""));
  if (before.doc.hash_kind != HashKind::contents)
    return fail(changed(common.snapshot + " is of format 1, which is no longer written", ""));
  Minimal found = find_minimal(*replayer, before, {arguments.tries, arguments.budget, say});
  Sharing sharing = sharing_of(found.doc);
  for (const std::string& line : found.left_out) sharing.left_out.push_back(line);
  if (sharing.verdict.empty()) sharing.verdict = verdict_line(before.verdict, before.verdict.culprit.module);
  if (!arguments.wrong.empty()) sharing.wrong = arguments.wrong;
  set_sharing(found.doc, sharing);
  say("writing " + arguments.output);
  if (const Status written = write_copy(replayer->reader(), found.doc, found.paths, {}, arguments.output);
      !written)
    return progress.clear(), fail(written.error());
  say("the new file, diagnosed");
  // The search used tables in memory that equal those written; the file itself is checked last.
  const auto again = Replayer::open(arguments.output);
  std::string difference = again ? "" : again.error().text();
  if (again && !Lab::stopped()) {
    const Judged now = judge_step(*again, arguments.output, arguments.budget, {});
    difference = nanquest::difference(found.verdict, now.verdict);
  }
  progress.clear();
  if (Lab::stopped()) {  // it was not checked that it still shows the same
    fs::remove(arguments.output);
    return kInterrupted;
  }
  if (!difference.empty()) {
    fs::remove(arguments.output);
    return fail(changed("the verdict is not the same twice: " + difference,
                        "with more time it may be: --budget SECONDS"));
  }
  print(common, arguments, found, verdict_line(found.verdict, found.verdict.culprit.module));
  return static_cast<int>(ExitCode::ok);
}

}  // namespace

int minimal_command(const Common& common, const MinimalArguments& arguments) {
  if (const Status free = free_place(arguments.output); !free) return fail(free.error());
  return sheltered(
      [&](const Doing& doing) { return minimised(common, arguments, doing); },
      [&](const std::string& crash) {
        std::error_code ignored;
        fs::remove(arguments.output, ignored);
        return fail(changed("a kernel crashed (" + crash + ")",
                            "nanquest-replay redact makes a copy without running the step (--no-check)"));
      });
}

}  // namespace nanquest::cli
