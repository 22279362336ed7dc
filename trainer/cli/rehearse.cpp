#include "trainer/cli/rehearse.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>

#include "probe/snapshot/atomic_file.h"
#include "trainer/cli/rehearsal_runs.h"
#include "trainer/cli/report.h"

namespace nanquest::trainer {
namespace {

constexpr int kInterrupted = 130;

std::atomic<Trainer*> rehearsing{nullptr};
std::atomic<bool> interrupted{false};

/// The first signal ends the run at its next step; a second one ends the program at once.
void on_interrupt(int signal) {
  std::signal(signal, SIG_DFL);
  interrupted = true;
  if (Trainer* trainer = rehearsing) trainer->request_stop(kInterrupted);
}

struct RehearsalWishes {
  OriginWish origin;
  RehearsalPlan plan;
  bool json = false, no_file = false;
};

void add_options(CLI::App& app, RehearsalWishes& w) {
  app.add_option("state", w.origin.given,
                 "a run's folder: from its last checkpoint that is early enough, else from its beginning; or "
                 "a checkpoint")
      ->required()
      ->type_name("RUN|CHECKPOINT");
  app.add_option("--set", w.plan.changes,
                 "KEY=VALUE[,KEY=VALUE]: a run with these settings changed; KEY=*0.5 multiplies. Repeatable")
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE");
  app.add_option("--steps", w.plan.steps, "steps beyond the incident")
      ->capture_default_str()
      ->check(CLI::Range(16, 1000000));
  app.add_option("--placebos", w.plan.placebos, "runs with a last bit of one weight changed")
      ->capture_default_str()
      ->check(CLI::Range(0, 1000));
  app.add_option("--step", w.origin.step, "another step than that of the first incident");
  app.add_option("--before", w.origin.before, "steps that the checkpoint is earlier, at least")
      ->capture_default_str()
      ->check(CLI::Range(0, 1000000));
  app.add_option("--data", w.plan.data, "where the run's data are now")->type_name("FILE|DIR");
  app.add_flag("--json", w.json, "print the result as JSON");
  app.add_flag("--no-file", w.no_file, "write nothing beside the snapshot");
}

int rehearse_as(const RehearsalWishes& w) {
  const Result<Origin> origin = find_origin(w.origin);
  if (!origin) return fail(origin.error());
  const auto say = [](const std::string& text) { std::fprintf(stderr, "%s\n", text.c_str()); };
  std::signal(SIGINT, on_interrupt);
  std::signal(SIGTERM, on_interrupt);
  const Result<Rehearsal> result = rehearse(*origin, w.plan,
                                            {.say = say,
                                             .trains = [](Trainer* trainer) { rehearsing = trainer; },
                                             .stopped = [] { return interrupted.load(); }});
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  if (interrupted) {
    say("interrupted: nothing was written");
    return kInterrupted;
  }
  if (!result) return fail(result.error());
  std::fputs((w.json ? to_json(*result) : rehearsal_text(*result)).c_str(), stdout);
  if (!w.no_file && !origin->snapshot.empty()) {
    const std::string path = rehearsal_path(origin->snapshot);
    if (Status s = write_file_atomically(path, to_json(*result)); !s)
      return fail({s.error().code, s.error().message, "--no-file only prints it"});
    say("written: " + path);
  }
  const bool cured = result->root && !result->root->change.empty();
  return static_cast<int>(cured ? ExitCode::ok : ExitCode::finding);
}

}  // namespace

int rehearse_command(int count, char** arguments) {
  CLI::App app(
      "Trains on from before an incident, several times: unchanged, with placebos, with each --set. Says "
      "which change "
      "cures the run; the run itself is only read.",
      "nanquest-trainer rehearse");
  app.footer(
      "Example:\n  nanquest-trainer rehearse runs/story --set 'lr=*0.5' --set 'lr=*0.1' --set "
      "amp-dtype=fp32\n"
      "Exit codes: 0 something cures, 1 nothing does or the incident did not come again, 2 usage, 3 bad "
      "file, 130 "
      "interrupted.");
  RehearsalWishes wishes;
  add_options(app, wishes);
  std::vector<std::string> words(arguments, arguments + count);
  std::reverse(words.begin(), words.end());  // in the order of CLI11
  try {
    app.parse(words);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);
    const std::string text = e.what();
    return fail({ErrorCode::usage, text.substr(0, text.find('\n')),
                 "nanquest-trainer rehearse --help lists the options"});
  }
  return rehearse_as(wishes);
}

}  // namespace nanquest::trainer
