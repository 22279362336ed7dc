#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "probe/snapshot/atomic_file.h"
#include "probe/snapshot/run_dir.h"
#include "probe/snapshot/series.h"
#include "probe/snapshot/sharing.h"
#include "probe/trace/spike_note.h"
#include "replay/cli/commands.h"
#include "replay/lab/shelter.h"
#include "replay/report/report.h"
#include "replay/spike/spike.h"
#include "replay/verdict/json.h"
#include "replay/verdict/root.h"

namespace nanquest::cli {
namespace {

/// A report that can't be written is a warning, not a failure: the verdict is on stdout.
void keep(const Status& status) {
  if (!status) std::fprintf(stderr, "nanquest-replay: warning: %s\n", status.error().text().c_str());
}

/// `runs`: whether the step may be run again to write them.
void write_files_beside(const Common& common, const Case& c, const Verdict& verdict, bool runs) {
  const std::string stem = stem_of(common.snapshot);
  const Status json = write_file_atomically(stem + ".json", to_json(verdict));
  keep(json);
  if (!json) return;  // the other two would fail for the same reason and print it again
  keep(write_file_atomically(stem + ".md", to_markdown(verdict)));
  if (runs) keep(write_replay_file(c, stem + ".replay.h5"));
}

/// With --patch: writes the fix as a patch, or says why there is none.
void write_patch(const std::string& path, const Verdict& verdict) {
  if (path.empty()) return;
  if (verdict.fix && !verdict.fix->patch.empty())
    return keep(write_file_atomically(path, verdict.fix->patch));
  const std::string why =
      verdict.fix ? verdict.fix->no_patch : "nothing that was tried is known to fix this step";
  std::fprintf(stderr, "nanquest-replay: no patch: %s\n", why.c_str());
}

/// How the file was changed after its run wrote it: its verdict depends on that.
void add_sharing(const SnapshotDoc& doc, Verdict& verdict) {
  for (const auto& [what, text] : sharing_lines(sharing_of(doc)))
    if (verdict.found)
      verdict.evidence.push_back({"this file, " + what, text});
    else
      verdict.not_tested.push_back(std::string("this file, ").append(what).append(": ").append(text));
}

/// The same in one line for the short form; "" for a file as its run wrote it.
std::string sharing_text(const SnapshotDoc& doc) {
  std::string text;
  for (const auto& [what, line] : sharing_lines(sharing_of(doc)))
    text.append(text.empty() ? "this file, " : "; ").append(what).append(": ").append(line);
  return text;
}

/// What to type next, and where the rest is; "" if nothing was found.
std::string next_text(const Common& common, const DiagnoseArguments& arguments, const Verdict& verdict) {
  if (!verdict.found) return "";
  const std::string show = "nanquest-viewer " + common.snapshot + " shows the step";
  if (arguments.no_files) return arguments.full ? show : show + "; --full prints all evidence";
  return show + "; all evidence: " + stem_of(common.snapshot) + ".md" + (arguments.full ? "" : ", or --full");
}

/// What became of the loss in the run to which the file belongs, by its history.
Aftermath aftermath_in_run(const std::string& snapshot, const SnapshotDoc& doc) {
  const auto note = spike_note(doc);
  const std::filesystem::path incidents = std::filesystem::absolute(snapshot).parent_path();
  const auto history = read_series(series_path(incidents.parent_path().string(), doc.rank));
  return note && history ? aftermath_of(*history, note->since) : Aftermath::open;
}

/// With less time than this a search tries nothing.
constexpr double kNoTime = 1e-9;

}  // namespace

int diagnosed(const Common& common, const DiagnoseArguments& arguments, const std::string& crash,
              const Doing& doing) {
  const bool runs = crash.empty();
  auto replayer = open_snapshot(common);
  if (!replayer) return fail(replayer.error());
  const auto device = device_for(common, replayer->doc());
  if (!device) return fail(device.error());
  Progressor progress(common.quiet);
  const auto say = saying(doing, progress);
  say("verifying: the step as recorded");
  const VerifyResult verified = verify(*replayer, *device);
  const StopOnInterrupt stop;
  say("who is to blame");
  const Case c = make_case(*replayer, {.seconds = runs ? arguments.budget : kNoTime}, verified.run);
  DiagnoseOptions options;
  options.try_fixes = !arguments.no_fixes;
  options.progress = say;
  for (const std::string& text : arguments.without)
    if (const auto label = from_word<Label>(text)) options.left_out.push_back(*label);
  options.crash = crash;
  Verdict verdict = diagnose(c, reproduction_of(verified), common.snapshot, options);
  if (!verdict.found && runs && options.try_fixes && c.doc().gate == Gate::spike)
    explain_spike(*replayer,
                  {.seconds = arguments.budget,
                   .after = aftermath_in_run(common.snapshot, c.doc()),
                   .device = *device,
                   .progress = say},
                  verdict);
  take_root(verdict, common.snapshot);
  add_sharing(c.doc(), verdict);
  progress.clear();
  if (!arguments.no_files) write_files_beside(common, c, verdict, runs);
  write_patch(arguments.patch, verdict);
  const std::string text = common.json ? to_json(verdict)
                           : arguments.brief
                               ? to_brief(verdict)
                               : to_text(verdict, {.colour = stdout_has_colour(),
                                                   .width = stdout_width(),
                                                   .full = arguments.full,
                                                   .file = sharing_text(c.doc()),
                                                   .next = next_text(common, arguments, verdict)});
  std::fputs(text.c_str(), stdout);
  if (Lab::stopped()) return kInterrupted;
  return static_cast<int>(verdict.found || verdict.unseen.any() ? ExitCode::finding : ExitCode::ok);
}

int diagnose_command(const Common& common, const DiagnoseArguments& arguments) {
  const char* const clear = isatty(STDERR_FILENO) == 1 ? "\r\033[K" : "";  // progress of the process that
                                                                           // crashed
  const int code =
      sheltered([&](const Doing& doing) { return diagnosed(common, arguments, "", doing); },
                [&](const std::string& crash) {
                  std::fprintf(stderr,
                               "%snanquest-replay: a kernel crashed (%s); what follows was found without "
                               "changing the step\n",
                               clear, crash.c_str());
                  return diagnosed(common, arguments, crash, [](const std::string&) {});
                });
  if (is_crash(code))
    std::fprintf(stderr,
                 "%snanquest-replay: a kernel crashes on the step as it is recorded, so nothing can be found "
                 "here; with the torch that it was recorded with it may run (nanquest-replay info %s)\n",
                 clear, common.snapshot.c_str());
  return code;
}

}  // namespace nanquest::cli
