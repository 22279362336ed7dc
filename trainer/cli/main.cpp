// nanquest-trainer: trains a byte-level GPT on text files under the guard of nanquest.
#include <torch/version.h>

#include <csignal>
#include <cstdio>

#include "probe/nanquest.h"
#include "trainer/cli/config_keys.h"
#include "trainer/cli/progress.h"
#include "trainer/cli/report.h"
#include "trainer/cli/settings.h"
#include "trainer/loop/trainer.h"
#include "trainer/precision/device.h"
#include "trainer/precision/formats.h"

namespace nanquest::trainer {
namespace {

Trainer* running = nullptr;

void on_signal(int) {
  if (running != nullptr) running->request_stop();
}

std::string version_text() {
  return "nanquest-trainer " NANQUEST_VERSION "\nLibTorch " TORCH_VERSION "\n" + file_versions();
}

int fail(const Error& error) {
  std::fprintf(stderr, "nanquest-trainer: %s\n", error.text().c_str());
  return exit_code(error.code);
}

std::string counted(std::int64_t n, const char* what) {
  return n > 0 ? ", " + std::to_string(n) + " " + what : "";
}

void describe(const Settings& s, const TextData& data, const Model& model, Trainer& trainer,
              Progress& progress) {
  progress.on_message("data: " + std::to_string(data.files()) + " files, " + std::to_string(data.bytes()) +
                      " bytes, " + std::to_string(data.train_windows()) + " windows to train on, " +
                      std::to_string(data.eval_windows()) + " held out" +
                      counted(data.skipped_binary(), "binary files skipped") +
                      counted(data.skipped_short(), "files too short") +
                      counted(data.skipped_other(), "other files passed over"));
  std::int64_t weights = 0;
  for (const auto& [name, p] : model.parameters()) weights += p.numel();
  progress.on_message("model: " + std::to_string(weights) + " weights, " + std::to_string(s.model.depth) +
                      " blocks of width " + std::to_string(s.model.width) + ", on " + s.loop.device.str());
  for (const FormatFact& fact :
       formats_in_use(model.parameters(), trainer.optimizer().state(), s.loop.device, s.loop.amp))
    progress.on_message("format: " + fact.what + ": " + fact.format + " (" + fact.why + ")");
}

int train(const CLI::App& app, Settings& s) {
  if (s.data.empty())
    return fail({ErrorCode::usage, "no data", "give --data FILE or FOLDER, or a --config that names it"});
  if (Status ok = check(s.model); !ok) return fail(ok.error());
  if (s.data_eval_every < 0 || s.data_eval_every == 1)
    return fail({ErrorCode::usage,
                 "holdout-every " + std::to_string(s.data_eval_every) + " leaves nothing to train on",
                 "0 holds nothing out, 20 each twentieth window"});
  Result<TextData> data = TextData::open(s.data, data_options(s));
  if (!data) return fail(data.error());
  if (Status ok = complete(s, *data); !ok) return fail(ok.error());
  s.loop.settings = settings_as_text(app);
  set_numerics(s.loop.seed, s.deterministic, s.tf32, s.threads);
  Result<std::unique_ptr<Model>> model = make_gpt(s.model, s.loop.seed, s.loop.device);
  if (!model) return fail(model.error());

  Progress progress(std::max<std::int64_t>(1, s.loop.steps / 40));
  const Listener listener{[&](const StepEvent& e) { progress.on_step(e); },
                          [&](const std::string& m) { progress.on_message(m); }};
  const Model& shown = **model;
  Result<std::unique_ptr<Trainer>> trainer = Trainer::create(s.loop, std::move(*model), *data, listener);
  if (!trainer) return fail(trainer.error());
  describe(s, *data, shown, **trainer, progress);
  running = trainer->get();
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
  Result<Summary> summary = (*trainer)->run();
  running = nullptr;
  progress.close();
  if (!summary) return fail(summary.error());
  std::fputs(s.json ? (summary_as_json(*summary) + "\n").c_str() : summary_as_text(*summary).c_str(), stdout);
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
      "5 state was corrupt and rolled back, 70 internal.");
  app.set_version_flag("--version", version_text(), "print versions and exit");
  Settings settings;
  declare_options(app, settings);
  app.set_config("--config", "", "TOML file with any of these options, without the dashes in front");
  try {
    // The file is checked before CLI11 reads it, because its own complaint names no way out.
    for (int i = 1; i < argc; ++i) {
      const std::string argument = argv[i];
      std::string path;
      if (argument == "--config" && i + 1 < argc) path = argv[i + 1];
      if (argument.starts_with("--config=")) path = argument.substr(9);
      if (path.empty()) continue;
      if (Status ok = check_config_keys(app, path); !ok) return fail(ok.error());
    }
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);  // --help, --version
    std::string text = e.what();
    return fail(
        {ErrorCode::usage, text.substr(0, text.find('\n')), "nanquest-trainer --help lists the options"});
  }
  return train(app, settings);
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
