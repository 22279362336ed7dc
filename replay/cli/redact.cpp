// nanquest-replay redact SNAPSHOT -o OUT: a copy that can be given away.
#include "replay/share/redact.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "probe/trace/culprit.h"
#include "replay/cli/commands.h"
#include "replay/lab/shelter.h"
#include "replay/share/judge.h"

namespace nanquest::cli {
namespace {

namespace fs = std::filesystem;

/// What the new file was found to show.
struct Checked {
  std::string replay;      ///< how exactly the step comes back
  std::string verdict;     ///< of the new file; "" if it was not diagnosed
  std::string difference;  ///< difference from the verdict before; "" if they say the same
};

/// Goes without being asked for.
bool is_usual(Private thing) {
  return thing != Private::history && thing != Private::names;
}

/// What was asked for; where that is none of what usually goes, beside it.
std::set<Private> wanted(const RedactArguments& arguments) {
  std::set<Private> asked, usual;
  for (const auto& [thing, name] : private_things()) {
    if (is_usual(thing)) usual.insert(thing);
    if (std::find(arguments.what.begin(), arguments.what.end(), name) != arguments.what.end())
      asked.insert(thing);
  }
  if (std::none_of(asked.begin(), asked.end(), is_usual)) asked.insert(usual.begin(), usual.end());
  return asked;
}

/// How exactly the step comes back, in words.
std::string replay_text(const Reproduction& r, std::size_t ops) {
  if (r.failed_ops > 0)
    return std::to_string(r.failed_ops) + " of " + std::to_string(ops) +
           " operations can't be run any more; the recorded trace and its culprit stay";
  switch (r.agreement()) {
    case Agreement::bit_for_bit:
      return "the step still replays bit for bit (" + std::to_string(r.outputs_compared) +
             " outputs compared)";
    case Agreement::within_bounds:
      return "the step still replays within its bounds";
    case Agreement::differs:
      return std::to_string(r.mismatched) + " of " + std::to_string(r.outputs_compared) +
             " outputs come out differently here";
    case Agreement::not_compared:
      break;
  }
  return "the step runs on other values now and no longer replays bit for bit; the recorded trace and its "
         "culprit stay";
}

Checked check(const std::string& path, const RedactArguments& arguments, const Verdict& before,
              const std::function<void(const std::string&)>& say) {
  const auto replayer = Replayer::open(path);
  if (!replayer) return {replayer.error().text(), "", ""};
  say("the new file, run again and diagnosed");
  const Judged now = judge_step(*replayer, path, arguments.budget, {});
  return {replay_text(now.verdict.reproduction, now.doc.ops.size()),
          verdict_line(now.verdict, now.verdict.culprit.module), difference(before, now.verdict)};
}

/// The verdict with its operation named as in the new file.
Verdict as_written(Verdict verdict, Redactor& redactor, bool renames) {
  CulpritInfo& culprit = verdict.culprit;
  const std::vector<OpRow>& ops = redactor.doc().ops;
  if (!culprit.inside.empty()) {  // its name is in no table
    if (renames && !culprit.op.starts_with("aten::")) culprit.op = "custom::operator";
  } else if (culprit.index >= 0 && static_cast<std::size_t>(culprit.index) < ops.size()) {
    culprit.op = ops[static_cast<std::size_t>(culprit.index)].name;
  }
  return verdict;
}

/// Reports beside the original, which describe what was in it.
std::vector<std::string> reports_beside(const std::string& snapshot) {
  std::vector<std::string> found;
  for (const char* ending : {".json", ".md", ".replay.h5", ".rehearsal.json", ".repro.py", ".repro.cpp"}) {
    std::error_code ignored;
    if (fs::exists(stem_of(snapshot) + ending, ignored)) found.emplace_back(ending);
  }
  return found;
}

void print(const Common& common, const RedactArguments& arguments, const Redactor& redactor,
           const Checked& checked, const std::string& before) {
  const std::uint64_t bytes = fs::file_size(arguments.output), was = fs::file_size(common.snapshot);
  const std::vector<std::string> beside = reports_beside(common.snapshot);
  if (common.json) {
    const nlohmann::ordered_json j = {
        {"output", arguments.output},
        {"bytes", bytes},
        {"bytes_before", was},
        {"redacted", redactor.gone()},
        {"stays", redactor.stays()},
        {"replay", checked.replay},
        {"verdict_before", before},
        {"verdict", checked.verdict},
        {"same_verdict", !checked.verdict.empty() && checked.difference.empty()},
        {"difference", checked.difference}};
    std::printf("%s\n", j.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
    return;
  }
  std::printf("%s: %s (the original has %s and is as it was)\n", arguments.output.c_str(),
              size_text(bytes).c_str(), size_text(was).c_str());
  const auto list = [](const char* label, const std::vector<std::string>& lines) {
    for (std::size_t i = 0; i < lines.size(); ++i)
      std::printf("%-11s %s\n", i ? "" : label, lines[i].c_str());
  };
  list("redacted", redactor.gone());
  list("stays", redactor.stays());
  std::printf("replay      %s\n", checked.replay.c_str());
  if (!before.empty()) std::printf("verdict     %s (before; kept in the new file)\n", before.c_str());
  if (!checked.verdict.empty() && checked.difference.empty())
    std::printf("            the new file gives the same\n");
  else if (!checked.verdict.empty())
    std::printf("            the new file gives another: %s (%s)\n", checked.verdict.c_str(),
                checked.difference.c_str());
  std::string names;
  for (const std::string& ending : beside) names.append(names.empty() ? "" : ", ").append(ending);
  if (!beside.empty())
    std::printf("beside      not redacted: the original's %s; give away the new file alone\n", names.c_str());
}

/// `crash`: what an earlier kernel crashed at; then nothing is diagnosed.
int redacted(const Common& common, const RedactArguments& arguments, const std::string& crash,
             const Doing& doing) {
  auto replayer = open_snapshot(common);
  if (!replayer) return fail(replayer.error());
  Progressor progress(common.quiet);
  const auto say = saying(doing, progress);
  const bool checks = !arguments.no_check && crash.empty();
  const StopOnInterrupt stop;
  Judged before{{}, replayer->doc()};
  if (checks) {
    say("the file as it is, diagnosed");
    before = judge_step(*replayer, common.snapshot, arguments.budget, {});
  } else if (before.doc.culprit.value.empty()) {
    find_culprit(before.doc);
  }
  if (Lab::stopped()) return kInterrupted;
  Redactor redactor(replayer->reader(), before.doc, {wanted(arguments), arguments.drop});
  Sharing sharing = sharing_of(redactor.doc());
  for (std::string& line : redactor.gone()) sharing.redacted.push_back(std::move(line));
  // What an earlier copy says of its original may contain names as well.
  const bool renames = wanted(arguments).count(Private::names) != 0;
  if (renames) sharing.verdict.clear();
  if (checks && sharing.verdict.empty())
    sharing.verdict = verdict_line(as_written(before.verdict, redactor, renames),
                                   redactor.module_name(before.verdict.culprit.module));
  if (!arguments.wrong.empty()) sharing.wrong = arguments.wrong;
  set_sharing(redactor.doc(), sharing);
  say("writing " + arguments.output);
  if (const Status written = redactor.write(arguments.output); !written) return fail(written.error());
  Checked checked;
  if (checks) {
    Verdict expected = as_written(before.verdict, redactor, renames);
    if (redactor.graphs_go() && !expected.culprit.inside.empty())
      expected.culprit.op = expected.culprit.inside;
    if (redactor.values_go()) expected.reproduction = {};  // reported in a sentence of its own
    checked = check(arguments.output, arguments, expected, say);
  } else {
    checked.replay = crash.empty() ? "not tried" : "not tried: a kernel crashed (" + crash + ")";
  }
  progress.clear();
  print(common, arguments, redactor, checked, sharing.verdict);
  return static_cast<int>(ExitCode::ok);
}

}  // namespace

int redact_command(const Common& common, const RedactArguments& arguments) {
  if (const Status free = free_place(arguments.output); !free) return fail(free.error());
  return sheltered([&](const Doing& doing) { return redacted(common, arguments, "", doing); },
                   [&](const std::string& crash) {
                     // Written by this command, before the crash or not: it is made again.
                     std::error_code ignored;
                     fs::remove(arguments.output, ignored);
                     return redacted(common, arguments, crash, [](const std::string&) {});
                   });
}

}  // namespace nanquest::cli
