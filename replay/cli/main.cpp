// nanquest-replay: runs a snapshot again and says what went wrong in it.
#include <cstdio>

#include "replay/cli/arguments.h"

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

void add_run_flags(CLI::App& sub, RunArguments& run, const char* precision) {
  run.precision = precision;
  sub.add_option("--precision", run.precision, "as-recorded, bf16, fp32 or fp64");
  sub.add_flag("--local", run.local, "Each op on its recorded inputs, not on what the changed run produced");
  sub.add_option("--module", run.modules, "PATH=fp32: only this module in another precision; repeatable")
      ->allow_extra_args(false);
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
  add_copies(app, a);
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
