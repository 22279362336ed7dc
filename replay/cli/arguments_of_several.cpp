// Sub-commands over several steps: of several ranks, of two runs, of a tape.
#include "replay/cli/arguments.h"

namespace nanquest::cli {

RanksArguments asked_of_ranks(const Arguments& a) {
  RanksArguments ranks = a.ranks;
  ranks.json = a.common.json;
  ranks.quiet = a.common.quiet;
  ranks.no_files = a.diagnose.no_files;
  return ranks;
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
  diff->add_option("A", a.diff.a, "A recorded step (nanquest run --record-steps N), or a run directory")
      ->required()
      ->type_name("A");
  diff->add_option("B", a.diff.b, "The same step of another run, or its directory")
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

}  // namespace nanquest::cli
