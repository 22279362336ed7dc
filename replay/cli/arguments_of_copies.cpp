// Sub-commands that make files to be given away.
#include "replay/cli/arguments.h"

namespace nanquest::cli {
namespace {

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

}  // namespace

void add_copies(CLI::App& app, Arguments& a) {
  add_redact(app, a);
  add_minimal(app, a);
  add_embed(app, a);
  add_collect(app, a);
}

}  // namespace nanquest::cli
