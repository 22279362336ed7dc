// nanquest-trainer: trains a byte-level GPT on text files under the guard of nanquest.
// Room trainer/cli: the program around the library. Everything that prints is here.
#include <torch/version.h>

#include <algorithm>
#include <csignal>
#include <cstdio>

#include "probe/nanquest.h"
#include "trainer/checkpoint/weights.h"
#include "trainer/cli/command_line.h"
#include "trainer/cli/progress.h"
#include "trainer/cli/report.h"
#include "trainer/config/shell_word.h"
#include "trainer/data/text_data.h"
#include "trainer/loop/trainer.h"
#include "trainer/model/gpt.h"
#include "trainer/optim/adamw.h"
#include "trainer/precision/device.h"
#include "trainer/precision/formats.h"
#include "trainer/text/text_task.h"

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

/// The parts that this program is made of, as a person sets them.
struct Parts {
  std::string path, init_from;
  DataOptions data;
  LoopConfig loop;
  NumericsOptions numerics;
  GptConfig model;
  ScheduleOptions schedule;
  AdamWOptions adamw;
  bool json = false;
  std::string resume;  ///< the command that goes on with the run
  SettingList list;

  Parts() {
    loop.steps = 0;
    for (const char* heading : {"Run", "Model", "Optimizer", "Precision", "Guard"}) list.group(heading);
    declare(list, path, data);
    declare(list, model);
    declare(list, schedule);
    declare(list, adamw);
    declare(list, loop);
    declare(list, numerics);
    declare(list, loop.scaler);
    list.group("Run");
    list.add("init-from", init_from,
             "begin with the weights of this safetensors file, as final and best are (a resume has its own)")
        .type_name = "FILE";
    list.add("json", json, "print the summary as JSON");
    list.incidental({"init-from", "json"});
  }
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;
};

Result<std::unique_ptr<Trainer>> make_trainer(Parts& parts, Progress& progress) {
  if (parts.path.empty())
    return Error{ErrorCode::usage, "no data", "give --data FILE or FOLDER, or a --config that names it"};
  if (Status ok = parts.list.check(); !ok) return ok.error();
  LoopConfig& loop = parts.loop;
  parts.data.context = parts.model.context;
  parts.data.seed = loop.seed;
  Result<TextData> data = TextData::open(parts.path, parts.data);
  if (!data) return data.error();
  const Result<at::Device> device = usable_device(parts.numerics);
  if (!device) return device.error();
  loop.device = *device;
  loop.amp = parts.numerics.amp;
  loop.settings = parts.list.as_text();
  loop.training = parts.list.training();
  set_numerics(loop.seed, parts.numerics);
  Result<std::unique_ptr<Model>> model = make_gpt(parts.model, loop.seed, loop.device);
  if (!model) return model.error();
  std::unique_ptr<Task> task = make_text_task(std::move(*model), std::move(*data));
  if (!parts.init_from.empty() && !loop.resume) {
    NamedTensors weights = task->parameters();
    for (const auto& buffer : task->buffers()) weights.push_back(buffer);
    if (Status ok = load_weights(parts.init_from, weights); !ok) return ok.error();
    progress.on_message("weights: from " + parts.init_from);
  }
  loop.steps = steps_of(loop, *task);
  loop.schedule = parts.schedule.over(loop.steps);
  Result<std::unique_ptr<Optimizer>> optimizer = make_adamw(task->parameters(), parts.adamw);
  if (!optimizer) return optimizer.error();
  progress.every(loop.steps / 40);
  return Trainer::create(loop, std::move(task), std::move(*optimizer),
                         {[&](const StepEvent& e) { progress.on_step(e); },
                          [&](const std::string& m) { progress.on_message(m); }});
}

int train(Parts& parts) {
  Progress progress;
  Result<std::unique_ptr<Trainer>> trainer = make_trainer(parts, progress);
  if (!trainer) return fail(trainer.error());
  Task& task = (*trainer)->task();
  for (const std::string& line : task.description()) progress.on_message(line);
  for (const FormatFact& fact :
       formats_in_use(task.parameters(), (*trainer)->optimizer().state(), parts.loop.device, parts.loop.amp))
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
                        " steps, saved; go on with: " + parts.resume);
  std::fputs(parts.json ? (summary_as_json(*summary) + "\n").c_str() : summary_as_text(*summary).c_str(),
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
      "Exit codes: 0 finished, 1 finished with skips or incidents, 2 usage, 3 bad file, 4 stopped on a "
      "non-finite step,\n"
      "5 state was corrupt and rolled back, 70 internal, 130 and 143 interrupted (Ctrl-C, SIGTERM): saved, "
      "resumable.");
  app.set_version_flag("--version", version_text(), "print versions and exit");
  Parts parts;
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
  parts.resume = resume_command(argc, argv);
  return train(parts);
}

}  // namespace
}  // namespace nanquest::trainer

int main(int argc, char** argv) {
  try {
    return nanquest::trainer::parse_and_train(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "nanquest-trainer: internal error: %s\n", e.what());
    return static_cast<int>(nanquest::ExitCode::internal);
  }
}
