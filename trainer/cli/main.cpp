// nanquest-trainer: trains a GPT on text or tokens, or fine-tunes a Hugging Face model, under the guard of
// nanquest. Room trainer/cli: the program around the library. Everything that prints is here.
#include <torch/version.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <memory>

#include "probe/nanquest.h"
#include "trainer/cli/command_line.h"
#include "trainer/cli/prepare_first.h"
#include "trainer/cli/program.h"
#include "trainer/cli/progress.h"
#include "trainer/cli/rehearse.h"
#include "trainer/cli/report.h"
#include "trainer/cli/sample.h"
#include "trainer/config/shell_word.h"
#include "trainer/parallel/launch.h"
#include "trainer/precision/formats.h"
#include "trainer/program/parts.h"

namespace nanquest::trainer {
namespace {

Trainer* running = nullptr;

/// The first signal ends the run at the next step; a second one ends the program at once (what is being
/// written then is lost).
void on_signal(int signal) {
  std::signal(signal, SIG_DFL);
  if (running != nullptr) running->request_stop(128 + signal);
}

/// The command of this process, with --resume.
std::string resume_command(int argc, char** argv, const Group& ranks) {
  std::string command = shell_word(argv[0]);
  if (launched().by == Launched::By::mpirun)
    command = "mpirun -n " + std::to_string(ranks.size()) + " " + command;
  if (launched().by == Launched::By::torchrun)
    command = "torchrun --nproc-per-node " + std::to_string(ranks.local_size()) + " -m nanquest train";
  bool resumes = false;
  for (int i = 1; i < argc; ++i) {
    command += " " + shell_word(argv[i]);
    resumes = resumes || std::string(argv[i]) == "--resume";
  }
  return command + (resumes ? "" : " --resume");
}

std::string version_text() {
  return "nanquest-trainer " NANQUEST_VERSION "\nLibTorch " TORCH_VERSION "\n" + file_versions();
}

/// Arguments beyond the parts of a run.
struct Asked {
  Parts parts;
  bool json = false;
  std::string resume;  ///< the command that resumes the run

  explicit Asked(ModelKind kind) : parts(kind) {
    parts.list.group("Run");
    parts.list.add("json", json, "print the summary as JSON");
    parts.list.incidental({"json"});
  }
};

/// The command that shows what is in `learned`.
std::string sample_command_of(const Parts& parts, const std::string& learned) {
  const bool adapts = learned.ends_with("/adapter");
  return "nanquest sample --model " + shell_word(adapts ? parts.folder : learned) +
         (adapts ? " --adapter " + shell_word(learned) : "") + " 'the beginning of a text'";
}

/// Lines of JSON in place of prepared pictures are prepared by the first rank; returns an exit code if that
/// failed, otherwise 0.
int prepare_pictures(Parts& parts, Group& ranks) {
  int code = 0;
  for (std::string* path : {&parts.path, &parts.held_out_path}) {
    const NotPrepared why = prepare_first(parts.folder, *path, ranks.first());
    if (why.exit_code != 0 && code == 0) code = why.told ? why.exit_code : fail(why.error);
  }
  return static_cast<int>(-ranks.least(-code));
}

/// Ends a process by `error`: one rank prints it if it is the error of all of them (`together`), otherwise
/// the others are ended too.
int ended(Group& ranks, Error error, bool together) {
  if (error.message.empty()) return 0;  // another rank prints it, and has the exit code
  if (!ranks.first()) error.message = "rank " + std::to_string(ranks.rank()) + ": " + error.message;
  const int code = fail(error);
  if (!together) ranks.end_all(code);
  return code;
}

/// The first rank reports the run; others only what they alone know.
Listener listener_of(Progress& progress, const Group& ranks) {
  if (ranks.first())
    return {[&](const StepEvent& e) { progress.on_step(e); },
            [&](const std::string& m) { progress.on_message(m); }};
  const std::string who = "rank " + std::to_string(ranks.rank()) + ": ";
  return {nullptr, [&progress, who](const std::string& m) { progress.on_message(who + m); }};
}

int train(Asked& asked, Group& ranks) {
  if (asked.parts.kind == ModelKind::yesno)
    if (const int code = prepare_pictures(asked.parts, ranks); code != 0) return ranks.first() ? code : 0;
  Progress progress;
  if (asked.parts.kind == ModelKind::yesno) progress.counts("pictures");
  Result<std::unique_ptr<Trainer>> trainer = make_trainer(asked.parts, listener_of(progress, ranks));
  if (!trainer) return ended(ranks, trainer.error(), true);
  const LoopConfig& loop = asked.parts.loop;
  progress.every(loop.steps / 40);
  Task& task = (*trainer)->task();
  if (ranks.first()) {
    if (!ranks.alone())
      progress.on_message("ranks: " + std::to_string(ranks.size()) + ", " +
                          std::to_string(loop.batch_size / ranks.size()) + " of each batch's " +
                          std::to_string(loop.batch_size) + " samples a rank");
    for (const std::string& line : task.description()) progress.on_message(line);
    for (const FormatFact& fact :
         formats_in_use(task.parameters(), (*trainer)->optimizer().state(), loop.device, loop.amp))
      progress.on_message("format: " + fact.what + ": " + fact.format + " (" + fact.why + ")");
  }
  running = trainer->get();
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
  Result<Summary> summary = (*trainer)->run();
  running = nullptr;
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  progress.close();
  if (!summary) return ended(ranks, summary.error(), (*trainer)->ended_together());
  if (!ranks.first()) return 0;
  if (asked.parts.loaded != nullptr && !summary->final_weights.empty()) {
    const Result<std::string> saved = save_pretrained(asked.parts);
    if (!saved) return ended(ranks, saved.error(), true);  // the others have ended
    summary->learned = *saved;
    if (asked.parts.kind == ModelKind::pretrained)
      summary->learned_command = sample_command_of(asked.parts, *saved);
  }
  if (static_cast<int>(summary->exit) > 128)
    progress.on_message("interrupted after " + std::to_string(summary->counters.optimizer_step) +
                        " steps, saved; go on with: " + asked.resume);
  std::fputs(asked.json ? (summary_as_json(*summary) + "\n").c_str() : summary_as_text(*summary).c_str(),
             stdout);
  return static_cast<int>(summary->exit);
}

constexpr const char* kExitCodes =
    "Exit codes: 0 finished, 1 finished with skips or incidents, 2 usage, 3 bad file, 4 stopped on a "
    "non-finite "
    "step,\n5 state was corrupt and rolled back, 70 internal, 130 and 143 interrupted (Ctrl-C, SIGTERM): "
    "saved, "
    "resumable.";

/// Name, what it does and examples of the command for models of a kind.
std::unique_ptr<CLI::App> app_for(ModelKind kind) {
  if (kind == ModelKind::gpt) {
    auto app = std::make_unique<CLI::App>(
        "Trains a GPT on text or tokens; a step that is not finite is undone, recorded and survived.",
        "nanquest-trainer");
    app->footer(
        std::string(
            "Example:\n  nanquest-trainer --data docs --amp-dtype fp16 --steps 500 --run-dir runs/first\n"
            "  nanquest-trainer --config samples/configs/story.toml --run-dir runs/story\n"
            "  nanquest-trainer finetune ...                           a Hugging Face model (finetune "
            "--help)\n"
            "  nanquest-trainer yesno ...                              a LLaVA that answers about pictures "
            "(yesno --help)\n"
            "  nanquest-trainer sample ...                             what it says now (sample --help)\n"
            "  nanquest-trainer rehearse runs/story --set 'lr=*0.5'    which change would have saved it "
            "(rehearse --help)\n") +
        kExitCodes);
    return app;
  }
  if (kind == ModelKind::yesno) {
    auto app = std::make_unique<CLI::App>(
        "Fine-tunes a LLaVA to answer a question about pictures with Yes or No, by the one token that comes "
        "next; tells how many of those labelled Yes (TPR) and of those labelled No (FPR) it answers with "
        "Yes. A "
        "step that is not finite is undone, recorded and survived.",
        "nanquest-trainer yesno");
    app->footer(
        std::string(
            "Example:\n  nanquest-trainer yesno --model models/llava --data pictures.jsonl --lora --run-dir "
            "runs/yesno\n"
            "  nanquest prepare --model models/llava --data pictures.jsonl --out prepared   the same in two "
            "steps\n"
            "  nanquest-trainer yesno --model models/llava --data prepared --lora --amp-dtype bf16 "
            "--run-dir runs/yesno\n"
            "What was learned stands in RUN-DIR/checkpoints/adapter for PEFT, or without --lora in "
            "RUN-DIR/checkpoints/model for from_pretrained.\n") +
        kExitCodes);
    return app;
  }
  auto app = std::make_unique<CLI::App>(
      "Fine-tunes a Hugging Face model folder on tokens of nanquest prepare; a step that is not finite is "
      "undone, "
      "recorded and survived.",
      "nanquest-trainer finetune");
  app->footer(
      std::string("Example:\n  nanquest prepare --model models/tiny-llama --data chats.jsonl --out prepared\n"
                  "  nanquest-trainer finetune --model models/tiny-llama --data prepared --lora --lr 2e-4 "
                  "--run-dir runs/chats\n"
                  "What was learned stands in RUN-DIR/checkpoints/adapter for PEFT, or without --lora in "
                  "RUN-DIR/checkpoints/model for "
                  "from_pretrained.\n") +
      kExitCodes);
  return app;
}

/// Fills `asked` from the arguments from number `first` on. True if a question was answered and the program
/// is done (--help).
Result<bool> parse(Asked& asked, ModelKind kind, int first, int argc, char** argv) {
  const std::unique_ptr<CLI::App> made = app_for(kind);
  CLI::App& app = *made;
  app.set_version_flag("--version", version_text(), "print versions and exit");
  Parts& parts = asked.parts;
  add_options(app, parts.list);
  // Taken out of the arguments below; here for --help.
  app.add_option("--set",
                 "KEY=VALUE: this setting, also where the checkpoint that --resume goes on from has another")
      ->group("Run");
  app.set_config("--config", "", "TOML file with any of these options, without the dashes in front");
  try {
    // The file is checked before CLI11 reads it, because CLI11's message does not say what to do.
    for (int i = first; i < argc; ++i) {
      const std::string argument = argv[i];
      std::string path;
      if (argument == "--config" && i + 1 < argc) path = argv[i + 1];
      if (argument.starts_with("--config=")) path = argument.substr(9);
      if (path.empty()) continue;
      if (Status ok = check_config_file(parts.list, path); !ok) return ok.error();
    }
    std::vector<std::string> arguments(argv + first, argv + argc);
    if (Status ok = take_changes(parts.list, arguments, parts.loop.changes); !ok) return ok.error();
    std::reverse(arguments.begin(), arguments.end());  // in the order of CLI11
    app.parse(arguments);
  } catch (const Refused& refused) {
    return refused.error;
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) {  // --help, --version
      if (asked.parts.loop.ranks->first()) (void)app.exit(e);
      return true;
    }
    std::string text = e.what();
    return Error{ErrorCode::usage, text.substr(0, text.find('\n')),
                 app.get_name() + " --help lists the options"};
  }
  asked.resume = resume_command(argc, argv, *asked.parts.loop.ranks);
  return false;
}

/// `first`: number of the first argument that is an option.
int parse_and_train(ModelKind kind, int first, int argc, char** argv) {
  const Launched by = launched();
  Result<std::unique_ptr<Group>> joined = join(by);
  if (!joined) return by.rank == 0 ? fail(joined.error()) : exit_code(joined.error().code);
  Group& ranks = *joined ? **joined : nobody_else();
  try {
    Asked asked(kind);
    asked.parts.loop.ranks = &ranks;
    const Result<bool> answered = parse(asked, kind, first, argc, argv);
    if (Status ok = agreed(ranks, answered ? Status() : answered.error()); !ok)
      return ended(ranks, ok.error(), true);
    return *answered ? 0 : train(asked, ranks);
  } catch (const std::exception& e) {
    // Before the group's own end, which waits for the others.
    return ended(ranks, {ErrorCode::internal, std::string("internal error: ") + e.what(), ""}, false);
  }
}

/// The commands that are one process.
int alone(const std::string& verb, int (*command)(int, char**), int argc, char** argv) {
  const Launched by = launched();
  if (by.size == 1) return command(argc, argv);
  const Error error{ErrorCode::usage, verb + " is one process, and this is one of " + std::to_string(by.size),
                    "start it without mpirun or torchrun"};
  return by.rank == 0 ? fail(error) : exit_code(error.code);
}

}  // namespace

int run_program(int argc, char** argv) {
  try {
    const std::string verb = argc > 1 ? argv[1] : "";
    if (verb == "rehearse") return alone(verb, rehearse_command, argc - 2, argv + 2);
    if (verb == "sample") return alone(verb, sample_command, argc - 2, argv + 2);
    if (verb == "yesno") return parse_and_train(ModelKind::yesno, 2, argc, argv);
    if (verb == "finetune") return parse_and_train(ModelKind::pretrained, 2, argc, argv);
    return parse_and_train(ModelKind::gpt, 1, argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "nanquest-trainer: internal error: %s\n", e.what());
  } catch (...) {
    std::fputs("nanquest-trainer: internal error of an unknown kind\n", stderr);
  }
  return static_cast<int>(ExitCode::internal);
}

}  // namespace nanquest::trainer

int main(int argc, char** argv) {
  return nanquest::trainer::run_program(argc, argv);
}
