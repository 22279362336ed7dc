// nanquest-trainer: trains a byte-level GPT on text files under the guard of nanquest.
// Room trainer/cli: the program around the library. Everything that prints is here.
#include <torch/version.h>

#include <algorithm>
#include <csignal>
#include <cstdio>

#include "probe/nanquest.h"
#include "trainer/cli/command_line.h"
#include "trainer/cli/progress.h"
#include "trainer/cli/rehearse.h"
#include "trainer/cli/report.h"
#include "trainer/config/shell_word.h"
#include "trainer/precision/formats.h"
#include "trainer/program/parts.h"

namespace nanquest::trainer {
namespace {

Trainer* running = nullptr;

/// The first signal ends the run at the next step; a second one ends the program as it would any other (what
/// is being written then is not seen).
void on_signal(int signal) {
  std::signal(signal, SIG_DFL);
  if (running != nullptr) running->request_stop(128 + signal);
}

/// The command of this process, with --resume.
std::string resume_command(int argc, char** argv) {
  std::string command;
  bool resumes = false;
  for (int i = 0; i < argc; ++i) {
    command += (i > 0 ? " " : "") + shell_word(argv[i]);
    resumes = resumes || std::string(argv[i]) == "--resume";
  }
  return command + (resumes ? "" : " --resume");
}

std::string version_text() {
  return "nanquest-trainer " NANQUEST_VERSION "\nLibTorch " TORCH_VERSION "\n" + file_versions();
}

int fail(const Error& error) {
  std::fprintf(stderr, "nanquest-trainer: %s\n", error.text().c_str());
  return exit_code(error.code);
}

/// What this program is told beyond the parts of a run.
struct Asked {
  Parts parts;
  bool json = false;
  std::string resume;  ///< the command that goes on with the run

  Asked() {
    parts.list.group("Run");
    parts.list.add("json", json, "print the summary as JSON");
    parts.list.incidental({"json"});
  }
};

int train(Asked& asked) {
  Progress progress;
  Result<std::unique_ptr<Trainer>> trainer =
      make_trainer(asked.parts, {[&](const StepEvent& e) { progress.on_step(e); },
                                 [&](const std::string& m) { progress.on_message(m); }});
  if (!trainer) return fail(trainer.error());
  const LoopConfig& loop = asked.parts.loop;
  progress.every(loop.steps / 40);
  Task& task = (*trainer)->task();
  for (const std::string& line : task.description()) progress.on_message(line);
  for (const FormatFact& fact :
       formats_in_use(task.parameters(), (*trainer)->optimizer().state(), loop.device, loop.amp))
    progress.on_message("format: " + fact.what + ": " + fact.format + " (" + fact.why + ")");
  running = trainer->get();
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
  Result<Summary> summary = (*trainer)->run();
  running = nullptr;
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  progress.close();
  if (!summary) return fail(summary.error());
  if (static_cast<int>(summary->exit) > 128)
    progress.on_message("interrupted after " + std::to_string(summary->counters.optimizer_step) +
                        " steps, saved; go on with: " + asked.resume);
  std::fputs(asked.json ? (summary_as_json(*summary) + "\n").c_str() : summary_as_text(*summary).c_str(),
             stdout);
  return static_cast<int>(summary->exit);
}

int parse_and_train(int argc, char** argv) {
  CLI::App app(
      "Trains a byte-level GPT on text files; a step that is not finite is undone, recorded and survived.",
      "nanquest-trainer");
  app.footer(
      "Example:\n  nanquest-trainer --data docs --amp-dtype fp16 --steps 500 --run-dir runs/first\n"
      "  nanquest-trainer --config samples/configs/story.toml --run-dir runs/story\n"
      "  nanquest-trainer rehearse runs/story --set 'lr=*0.5'    which change would have saved it (rehearse --help)\n"
      "Exit codes: 0 finished, 1 finished with skips or incidents, 2 usage, 3 bad file, 4 stopped on a "
      "non-finite step,\n"
      "5 state was corrupt and rolled back, 70 internal, 130 and 143 interrupted (Ctrl-C, SIGTERM): saved, "
      "resumable.");
  app.set_version_flag("--version", version_text(), "print versions and exit");
  Asked asked;
  Parts& parts = asked.parts;
  add_options(app, parts.list);
  // Taken out of the arguments below; here for --help.
  app.add_option("--set",
                 "KEY=VALUE: this setting, also where the checkpoint that --resume goes on from has another")
      ->group("Run");
  app.set_config("--config", "", "TOML file with any of these options, without the dashes in front");
  try {
    // The file is checked before CLI11 reads it, because its own complaint names no way out.
    for (int i = 1; i < argc; ++i) {
      const std::string argument = argv[i];
      std::string path;
      if (argument == "--config" && i + 1 < argc) path = argv[i + 1];
      if (argument.starts_with("--config=")) path = argument.substr(9);
      if (path.empty()) continue;
      if (Status ok = check_config_file(parts.list, path); !ok) return fail(ok.error());
    }
    std::vector<std::string> arguments(argv + 1, argv + argc);
    if (Status ok = take_changes(parts.list, arguments, parts.loop.changes); !ok) return fail(ok.error());
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
    app.parse(arguments);
  } catch (const Refused& refused) {
    return fail(refused.error);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);  // --help, --version
    std::string text = e.what();
    return fail(
        {ErrorCode::usage, text.substr(0, text.find('\n')), "nanquest-trainer --help lists the options"});
  }
  asked.resume = resume_command(argc, argv);
  return train(asked);
}

}  // namespace
}  // namespace nanquest::trainer

int main(int argc, char** argv) {
  try {
    if (argc > 1 && std::string(argv[1]) == "rehearse")
      return nanquest::trainer::rehearse_command(argc - 2, argv + 2);
    return nanquest::trainer::parse_and_train(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "nanquest-trainer: internal error: %s\n", e.what());
    return static_cast<int>(nanquest::ExitCode::internal);
  }
}
