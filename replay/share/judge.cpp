#include "replay/share/judge.h"

#include "replay/verdict/confidence.h"
#include "replay/verdict/words.h"

namespace nanquest {
namespace {

std::string cause_of(const Verdict& v) {
  return v.found ? std::string(word(meant_cause(v))) : "nothing harmful";
}

std::string precision_of(const Verdict& v) {
  return v.precision.verdict ? std::string(word(*v.precision.verdict)) : "unknown";
}

std::string phase_of(const Verdict& v) {
  return v.phase ? std::string(word(*v.phase)) : "unknown";
}

const char* fix_of(const Verdict& v) {
  return v.fix && v.fix->verified ? "a verified fix" : "no verified fix";
}

}  // namespace

Judged judge_step(const Replayer& replayer, const std::string& snapshot, double seconds,
                  const Progress& progress) {
  const Reproduction reproduction = reproduction_of(verify(replayer));
  const Case c = make_case(replayer, {.seconds = seconds});
  DiagnoseOptions options;
  options.find_samples = false;
  options.progress = progress;
  return {diagnose(c, reproduction, snapshot, options), c.doc()};
}

std::string verdict_line(const Verdict& v, const std::string& module) {
  if (!v.found) return cause_of(v);
  std::string text = cause_of(v) + ": " + (v.culprit.op.empty() ? std::string("no op") : v.culprit.op);
  if (!module.empty()) text += " in " + module;
  return text + " (" + phase_of(v) + "), origin " + std::string(word(v.origin)) + ", with " + fix_of(v);
}

std::string difference(const Verdict& before, const Verdict& now, std::optional<std::int64_t> op) {
  const auto differs = [](const std::string& what, const std::string& a, const std::string& b) {
    return what + " was " + a + " and is " + b;
  };
  if (before.found != now.found || meant_cause(before) != meant_cause(now))
    return differs("the cause", cause_of(before), cause_of(now));
  if (before.culprit.op != now.culprit.op) return differs("the operation", before.culprit.op, now.culprit.op);
  if (const std::int64_t expected = op.value_or(before.culprit.index); expected != now.culprit.index)
    return differs("the operation's place", std::to_string(expected), std::to_string(now.culprit.index));
  if (before.origin != now.origin)
    return differs("the origin", std::string(word(before.origin)), std::string(word(now.origin)));
  if (before.phase != now.phase) return differs("the phase", phase_of(before), phase_of(now));
  if (before.precision.verdict != now.precision.verdict)
    return differs("what precision does", precision_of(before), precision_of(now));
  if ((before.fix && before.fix->verified) != (now.fix && now.fix->verified))
    return differs("the fix", fix_of(before), fix_of(now));
  if (before.reproduction.agreement() != now.reproduction.agreement())
    return differs("the replay", std::string(word(before.reproduction.agreement())),
                   std::string(word(now.reproduction.agreement())));
  return "";
}

}  // namespace nanquest
