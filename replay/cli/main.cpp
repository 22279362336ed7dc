// nanquest-replay: runs a snapshot again and says what went wrong in it.
#include <dlfcn.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <utility>

#include "probe/snapshot/reference.h"
#include "replay/cli/commands.h"

namespace {

using namespace nanquest::cli;

constexpr const char* kExample = R"(Example:
  nanquest-replay run/incidents/step-00000131.r0.h5
      verifies bit for bit, names the cause, tries fixes; writes .json, .md and .replay.h5 beside the snapshot
  nanquest-replay run/incidents/step-00000131.r*.h5
      several ranks of a step together, the collectives between them really done
  nanquest-replay run step.h5 --module blocks.1.mlp=fp32
  nanquest-replay bisect samples step.h5
  nanquest-replay redact step.h5 -o for-you.h5
      a copy that can be given away, and what it still shows

Exit code: 0 nothing harmful (or bit-exact), 1 a finding, 2 usage, 3 bad file, 70 internal.)";

/// Everything that the flags set; `action` is what to do after parsing.
struct Arguments {
  Common common;
  RunArguments run;
  ReproArguments repro;
  std::string what;
  int rows = 20;
  DiagnoseArguments diagnose;
  HeadroomArguments headroom;
  JudgeArguments judge;
  CollectArguments collect;
  RanksArguments ranks;
  std::vector<std::string> more;      ///< snapshots of other ranks, after the first
  std::vector<std::string> settings;  ///< texts of --set
  RewindArguments rewind;
  DiffArguments diff;
  RedactArguments redact;
  MinimalArguments minimal;
  EmbedArguments embed;
  std::function<int()> action;
};

/// Readers of snapshots look there, also in child processes.
void add_model(CLI::App& app) {
  app.add_option_function<std::string>(
         "--model", [](const std::string& path) { ::setenv(nanquest::kModelVariable, path.c_str(), 1); },
         "Where the model's folder lies now, for a snapshot that refers to its files for frozen weights")
      ->check(CLI::ExistingPath)
      ->type_name("DIR");
}

/// Operators that are not LibTorch's own are run again once they are defined here; otherwise they get their
/// recorded results.
void add_load(CLI::App& app) {
  app.add_option_function<std::vector<std::string>>(
         "--load",
         [](const std::vector<std::string>& libraries) {
           for (const std::string& path : libraries)
             if (!dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL))
               throw CLI::ValidationError("--load",
                                          std::string(dlerror()) +
                                              " (give a library of operators, TORCH_LIBRARY, that was "
                                              "built for this LibTorch)");
         },
         "A library of operators that the program had loaded, so that they run again; repeatable (those "
         "written in Python: nanquest replay --import MODULE)")
      ->check(CLI::ExistingFile)
      ->allow_extra_args(false)
      ->type_name("LIBRARY");
}

void add_common(CLI::App& app, Common& common, bool required) {
  auto* snapshot =
      app.add_option("snapshot", common.snapshot, "Snapshot file (step-*.h5)")->type_name("SNAPSHOT");
  if (required) snapshot->required();
  app.add_flag("--json", common.json, "Print the result as JSON");
  app.add_flag("-q,--quiet", common.quiet, "No progress on stderr");
  add_model(app);
  add_load(app);
}

void add_device(CLI::App& app, Common& common) {
  app.add_option(
         "--device", common.device,
         "Where the step runs as recorded: cpu, or the device that it was recorded on, which is the default "
         "if it is here; what is tried runs on the CPU")
      ->type_name("DEVICE");
}

CLI::App* subcommand(CLI::App& app, Arguments& a, const char* name, const char* about,
                     std::function<int()> action) {
  CLI::App* sub = app.add_subcommand(name, about);
  sub->callback([&a, action = std::move(action)] { a.action = action; });
  return sub;
}

void add_run_flags(CLI::App& sub, RunArguments& run, const char* precision) {
  run.precision = precision;
  sub.add_option("--precision", run.precision, "as-recorded, bf16, fp32 or fp64");
  sub.add_flag("--local", run.local, "Each op on its recorded inputs, not on what the changed run produced");
  sub.add_option("--module", run.modules, "PATH=fp32: only this module in another precision; repeatable")
      ->allow_extra_args(false);
}

std::string is_cause(const std::string& text) {
  return nanquest::from_word<nanquest::Label>(text) ? "" : "\"" + text + "\" is not a cause";
}

void add_diagnose_flags(CLI::App& app, Arguments& a) {
  app.add_flag("--no-files", a.diagnose.no_files, "Write nothing beside the snapshot");
  app.add_flag("--no-fixes", a.diagnose.no_fixes, "Don't try fixes");
  app.add_flag("--full", a.diagnose.full, "Print all evidence and everything that was tried");
  app.add_flag("--brief", a.diagnose.brief, "Three lines: what, why, what to do")->excludes("--full");
  app.add_option(
         "--patch", a.diagnose.patch,
         "Write the fix that was tried as a patch of the program (patch -p0 < FILE); nothing is applied")
      ->type_name("FILE");
  app.add_option("--without", a.diagnose.without,
                 "Don't ask this cause (LOG_ZERO): what is said where the right cause is not known")
      ->check(is_cause)
      ->type_name("CAUSE");
  app.add_option(
         "--budget", a.diagnose.budget,
         "Seconds for all that is tried (default: 20 times the step, at least 30); Ctrl-C ends it too "
         "and prints what is known")
      ->check(CLI::PositiveNumber)
      ->type_name("SECONDS");
}

void add_budget(CLI::App& sub, double& seconds) {
  sub.add_option("--budget", seconds, "Seconds for each diagnosis (default: 20 times the step, at least 30)")
      ->check(CLI::PositiveNumber)
      ->type_name("SECONDS");
}

void add_wrong(CLI::App& sub, std::string& wrong) {
  sub.add_option("--wrong", wrong,
                 "The verdict is wrong: what it really was; kept in the new file and shown with it")
      ->type_name("TEXT");
}

/// A flag that adds its name to what is redacted.
void add_private(CLI::App& sub, std::vector<std::string>& what, const std::string& name, const char* about) {
  sub.add_flag_callback(
      "--" + name, [&what, name] { what.push_back(name); }, about);
}

void add_redact(CLI::App& app, Arguments& a) {
  CLI::App* redact = subcommand(app, a, "redact", "A copy that can be given away, and what it still shows",
                                [&a] { return redact_command(a.common, a.redact); });
  add_common(*redact, a.common, true);
  redact->add_option("-o,--output", a.redact.output, "The new file; nothing is written over")
      ->required()
      ->type_name("OUT.h5");
  add_private(*redact, a.redact.what, "texts", "Texts of the samples, and the integers of the batch");
  add_private(*redact, a.redact.what, "samples",
              "The whole batch, the healthy step's too, and the ids of samples");
  add_private(*redact, a.redact.what, "weights", "Weights, buffers, optimizer states; norms to a sixteenth");
  add_private(*redact, a.redact.what, "paths", "Files and lines; settings and variables that name a place");
  add_private(*redact, a.redact.what, "machine", "Host, time, processor, environment variables");
  add_private(*redact, a.redact.what, "settings", "Settings of the run");
  add_private(*redact, a.redact.what, "history", "Losses, rates and norms of the steps before");
  add_private(*redact, a.redact.what, "names", "Names of modules, weights and own functions become others");
  CLI::Option* scramble =
      redact->add_flag("--scramble", a.redact.scramble,
                       "Other values of the same kind and size in place of values (the default)");
  redact->add_flag("--drop", a.redact.drop, "No values in their place: what reads them can't be run again")
      ->excludes(scramble);
  redact->add_flag("--no-check", a.redact.no_check, "Don't diagnose the file before and after");
  add_wrong(*redact, a.redact.wrong);
  add_budget(*redact, a.redact.budget);
  redact->footer(
      "Without any of --texts … --settings: all of these; --history and --names add to them.\n"
      "Example:\n  nanquest-replay redact step-00000131.r0.h5 -o for-you.h5 --weights --samples --names");
}

RanksArguments asked_of_ranks(Arguments& a) {
  a.ranks.json = a.common.json;
  a.ranks.quiet = a.common.quiet;
  a.ranks.no_files = a.diagnose.no_files;
  return a.ranks;
}

void add_ranks(CLI::App& app, Arguments& a) {
  CLI::App* ranks =
      subcommand(app, a, "ranks", "Several ranks of a step together (what several SNAPSHOTs alone do)",
                 [&a] { return ranks_command(asked_of_ranks(a)); });
  ranks->add_option("files", a.ranks.files, "The step's snapshots, one a rank; or a run directory")
      ->required()
      ->type_name("SNAPSHOT");
  ranks->add_option("--step", a.ranks.step, "Of a run directory: this step instead of its first incident")
      ->check(CLI::NonNegativeNumber);
  ranks->add_flag("--json", a.common.json, "Print the result as JSON");
  ranks->add_flag("-q,--quiet", a.common.quiet, "No progress on stderr");
  add_model(*ranks);
  ranks->add_flag("--no-files", a.diagnose.no_files, "Write nothing beside the snapshots");
  add_load(*ranks);
  ranks->footer(
      "Every rank runs up to its next collective, which is then really done and held against what each rank\n"
      "recorded; a bad value is followed from the rank that made it to the loss and gradients that show it.\n"
      "Example:\n  nanquest-replay run/incidents/step-00000131.r*.h5\n"
      "Exit code: 0 nothing harmful and every collective as recorded, 1 a finding, 2 usage, 3 bad file.");
}

void add_diff(CLI::App& app, Arguments& a) {
  CLI::App* diff =
      subcommand(app, a, "diff", "Two recordings of one step, or two runs: where they part, and why",
                 [&a] { return diff_command(a.diff); });
  diff->add_option("a", a.diff.a, "A recorded step (nanquest run --record-steps N), or a run directory")
      ->required()
      ->type_name("A");
  diff->add_option("b", a.diff.b, "The same step of another run, or its directory")
      ->required()
      ->type_name("B");
  diff->add_option("--step", a.diff.step,
                   "Of two directories: this step (default: the newest that both recorded)")
      ->check(CLI::NonNegativeNumber)
      ->type_name("N");
  diff->add_flag("--json", a.diff.json, "Print the result as JSON");
  diff->add_option("--html", a.diff.html, "Write it as one HTML file, with tables of all differences")
      ->type_name("FILE");
  diff->add_flag("--full", a.diff.full, "Print all differences");
  diff->add_flag("-q,--quiet", a.diff.quiet, "No progress on stderr");
  add_model(*diff);
  add_load(*diff);
  diff->footer(
      "Examples:\n  nanquest-replay diff before after\n"
      "  nanquest-replay diff before/recordings/step-00000000.r0.h5 after/recordings/step-00000000.r0.h5\n"
      "Exit code: 0 alike within rounding, 1 they differ, 2 usage, 3 bad file.");
}

void add_collect(CLI::App& app, Arguments& a) {
  CLI::App* collect = subcommand(app, a, "collect", "A run's files of several nodes into one run directory",
                                 [&a] { return collect_command(a.collect); });
  collect
      ->add_option("from", a.collect.from,
                   "Run directories of the nodes, folders of snapshots, or single snapshots")
      ->required()
      ->type_name("DIR");
  collect->add_option("-o,--output", a.collect.output, "The new run directory; nothing is written over")
      ->required()
      ->type_name("OUT");
  collect->add_flag("--json", a.collect.json, "Print what was taken as JSON");
  collect->footer(
      "Files are copied and read against their checksums; OUT appears complete or not at all.\n"
      "Example:\n  nanquest-replay collect node0/run node1/run -o run\n"
      "Exit code: 0 collected, 2 not one run, or OUT is there already, 3 a damaged file or a failing disk.");
}

void add_minimal(CLI::App& app, Arguments& a) {
  CLI::App* minimal = subcommand(app, a, "minimal", "The smallest copy that gives the same verdict",
                                 [&a] { return minimal_command(a.common, a.minimal); });
  add_common(*minimal, a.common, true);
  minimal->add_option("-o,--output", a.minimal.output, "The new file; nothing is written over")
      ->required()
      ->type_name("OUT.h5");
  minimal->add_option("--tries", a.minimal.tries, "Diagnoses at most")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  add_wrong(*minimal, a.minimal.wrong);
  add_budget(*minimal, a.minimal.budget);
  minimal->footer(
      "Example:\n  nanquest-replay minimal step-00000131.r0.h5 -o small.h5 --wrong \"the batch was fine\"");
}

void add_embed(CLI::App& app, Arguments& a) {
  CLI::App* embed =
      subcommand(app, a, "embed", "A copy that needs no other file: frozen weights are copied into it",
                 [&a] { return embed_command(a.common, a.embed); });
  add_common(*embed, a.common, true);
  embed->add_option("-o,--output", a.embed.output, "The new file; nothing is written over")
      ->required()
      ->type_name("OUT.h5");
  embed->footer(
      "Snapshots of a fine-tune refer to the model's files for weights that do not train.\n"
      "Example:\n  nanquest-replay embed step-00000131.r0.h5 -o whole.h5\n"
      "Exit code: 0 written, 2 it needs no other file, or OUT is there already, 3 a file is gone or has "
      "changed.");
}

void add_rewind(CLI::App& app, Arguments& a) {
  CLI::App* rewind = subcommand(app, a, "rewind",
                                "Run the steps before the incident again, from the tape in its file "
                                "(nanquest run --tape, nanquest-trainer --tape), as they were "
                                "and with one thing changed",
                                [&a] { return rewind_command(a.common, a.rewind); });
  add_common(*rewind, a.common, true);
  add_device(*rewind, a.common);
  rewind
      ->add_option(
          "--set", a.rewind.changes,
          "lr=*FACTOR, warmup=STEPS, clip=NORM, moments=reset, precision=fp32|bf16|fp64, undo=STEP, "
          "skip=STEP, and of fused optimizers beta1, beta2, eps, weight_decay and momentum=VALUE or *FACTOR; "
          "each a run of its own; repeatable (default: lr=*0.5, lr=*0.1, lr=*0.01, a warm-up as long as the "
          "tape, clip=1, moments=reset, beta2=0.95 and eps=*100 of fused optimizers, precision=fp32 where 16 "
          "bits were used, and the incident's "
          "step skipped)")
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE");
  rewind->add_option("--placebos", a.rewind.placebos, "Runs with a last bit of one weight changed")
      ->check(CLI::Range(0, 1000))
      ->capture_default_str();
  rewind->add_flag("--only-check", a.rewind.only_check,
                   "Only whether the steps reach the incident bit for bit");
  rewind->add_flag("--no-file", a.rewind.no_file, "Write nothing beside the snapshot");
  rewind->footer(
      "Example:\n  nanquest-replay rewind step-00000131.r0.h5 --set 'lr=*0.25'\n"
      "Exit code: 0 a change cures (or, with --only-check, the incident is reached), 1 none does or it is "
      "not "
      "reached, 2 usage, 3 bad file, 130 interrupted.");
}

void add_subcommands(CLI::App& app, Arguments& a) {
  CLI::App* verify = subcommand(app, a, "verify", "Run as recorded and compare every output bit for bit",
                                [&a] { return verify_command(a.common); });
  add_common(*verify, a.common, true);
  CLI::App* audit =
      subcommand(app, a, "audit", "Run a recorded step again: did the machine compute it right?",
                 [&a] { return audit_command(a.common); });
  add_common(*audit, a.common, true);
  audit->footer(
      "Exit code: 0 all outputs have the same bits, 1 one differs or nothing could be compared, 3 bad file.");
  add_device(*verify, a.common);
  add_rewind(app, a);
  CLI::App* run = subcommand(app, a, "run", "Run the step, every output of every op checked",
                             [&a] { return run_command(a.common, a.run); });
  add_common(*run, a.common, true);
  add_run_flags(*run, a.run, "as-recorded");
  add_device(*run, a.common);
  CLI::App* diagnose = subcommand(app, a, "diagnose", "Verdict and fixes (what SNAPSHOT alone does)",
                                  [&a] { return diagnose_command(a.common, a.diagnose); });
  add_common(*diagnose, a.common, true);
  add_diagnose_flags(*diagnose, a);
  add_device(*diagnose, a.common);
  CLI::App* bisect = subcommand(app, a, "bisect", "Smallest set of samples or modules that matters",
                                [&a] { return bisect_command(a.common, a.what); });
  bisect->add_option("what", a.what, "samples or modules")
      ->required()
      ->check(CLI::IsMember({"samples", "modules"}));
  add_common(*bisect, a.common, true);
  CLI::App* repro = subcommand(app, a, "repro", "Write the culprit alone as a Python and a C++ program",
                               [&a] { return repro_command(a.common, a.repro); });
  add_common(*repro, a.common, true);
  repro->add_option("--op", a.repro.op, "Another op of the trace instead of the culprit");
  repro->add_option("-o,--output", a.repro.directory, "Directory; beside the snapshot by default");
  CLI::App* compare = subcommand(app, a, "compare", "Captured against replayed values, op by op",
                                 [&a] { return compare_command(a.common, a.run, a.rows); });
  add_common(*compare, a.common, true);
  compare->add_option("--precision", a.run.precision, "as-recorded, bf16, fp32 or fp64");
  compare->add_flag("--local", a.run.local, "Each op on its recorded inputs");
  compare->add_option("--module", a.run.modules, "PATH=fp32; repeatable")->allow_extra_args(false);
  compare->add_option("--rows", a.rows, "Outputs shown, worst first")->check(CLI::PositiveNumber);
  CLI::App* headroom =
      subcommand(app, a, "headroom", "What a run's values have left to the end of their formats",
                 [&a] { return headroom_command(a.headroom); });
  headroom->add_option("run", a.headroom.run, "Directory of a run")->required()->type_name("RUN_DIR");
  headroom->add_option("--bits", a.headroom.bits, "Shown is what has no more left; 1 bit is a factor of 2")
      ->capture_default_str();
  headroom->add_flag("--json", a.headroom.json, "Print the result as JSON");
  CLI::App* judge = subcommand(app, a, "judge", "What a rehearsal says: which change cures the run",
                               [&a] { return judge_command(a.judge); });
  judge->add_option("rehearsal", a.judge.file, "A file step-*.rehearsal.json, or - for stdin")
      ->required()
      ->type_name("FILE");
  judge->add_flag("--json", a.judge.json, "Print it as JSON, judged");
  CLI::App* settings = subcommand(app, a, "settings", "What --set means, as JSON for nanquest rehearse",
                                  [&a] { return settings_command(a.settings); });
  settings->add_option("texts", a.settings)->required()->type_name("KEY=VALUE,…");
  settings->group("");  // of no use to people
  add_redact(app, a);
  add_minimal(app, a);
  add_embed(app, a);
  add_collect(app, a);
  add_ranks(app, a);
  add_diff(app, a);
  add_common(*subcommand(app, a, "info", "What the snapshot holds", [&a] { return info_command(a.common); }),
             a.common, true);
}

/// For "verfy step.h5": the first word was taken for a snapshot.
bool looks_like_command(const std::string& word) {
  return !word.empty() && word.find_first_of("./") == std::string::npos;
}

int no_such_command(const std::string& word) {
  std::fprintf(stderr, "nanquest-replay: \"%s\" is not a sub-command (see nanquest-replay --help)\n",
               word.c_str());
  return static_cast<int>(nanquest::ExitCode::usage);
}

}  // namespace

int nanquest::cli::run_program(int argc, char** argv) try {
  Arguments a;
  CLI::App app("Runs a snapshot again, op by op, and says what went wrong, why, and what to do.",
               "nanquest-replay");
  app.footer(kExample);
  app.set_version_flag("--version", version_text);
  add_common(app, a.common, false);
  app.add_option("more", a.more, "Snapshots of the same step's other ranks: all are replayed together")
      ->type_name("SNAPSHOT");
  add_diagnose_flags(app, a);
  add_device(app, a.common);
  add_subcommands(app, a);
  app.require_subcommand(0, 1);
  try {
    app.parse(argc, argv);
    if (!a.action && a.common.snapshot.empty()) throw CLI::RequiredError("SNAPSHOT");
    // compare without a precision would compare the recording with itself.
    if (app.got_subcommand("compare") && a.run.precision == "as-recorded" && a.run.modules.empty())
      a.run.precision = "fp64";
  } catch (const CLI::CallForHelp&) {
    return std::fputs(app.help().c_str(), stdout), 0;
  } catch (const CLI::CallForVersion& version) {
    return std::printf("%s\n", version.what()), 0;
  } catch (const CLI::ExtrasError& error) {
    if (!a.action && looks_like_command(a.common.snapshot)) return no_such_command(a.common.snapshot);
    std::fprintf(stderr, "nanquest-replay: %s (see nanquest-replay --help)\n", error.what());
    return static_cast<int>(nanquest::ExitCode::usage);
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "nanquest-replay: %s (see nanquest-replay --help)\n", error.what());
    return static_cast<int>(nanquest::ExitCode::usage);
  }
  if (a.action) return a.action();
  a.ranks.files = {a.common.snapshot};
  a.ranks.files.insert(a.ranks.files.end(), a.more.begin(), a.more.end());
  a.ranks.files = without_replays(a.ranks.files);
  if (a.ranks.files.size() == 1) return diagnose_command(a.common, a.diagnose);
  if (looks_like_command(a.common.snapshot)) return no_such_command(a.common.snapshot);
  return ranks_command(asked_of_ranks(a));
} catch (const std::exception& error) {
  std::fprintf(stderr, "nanquest-replay: %s\n", error.what());
  return static_cast<int>(nanquest::ExitCode::internal);
}

int main(int argc, char** argv) {
  return nanquest::cli::run_program(argc, argv);
}
