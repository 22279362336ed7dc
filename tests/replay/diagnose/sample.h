/// What the test of every cause asks: is its sample explained, and what must stay UNKNOWN?
#pragma once

#include "probe/observe/step_scope.h"
#include "replay/verdict/confidence.h"
#include "tests/replay/diagnose/incident.h"
#include "tests/replay/diagnose/programs.h"

namespace nanquest::testing {

struct Expected {
  Label cause;
  Phase phase;
  std::string op, module;
  Origin origin = Origin::op;
  PrecisionVerdict precision;
  std::vector<std::int64_t> poison = {};
};

/// Runs the sample of this name and explains the file that it leaves; the snapshot is named as in
/// "sample.h5".
inline Verdict sample_verdict(const std::string& sample, int expected_code) {
  const Scratch scratch("sample_" + sample);
  const std::string snapshot = record_sample(sample, scratch, expected_code);
  auto replayer = Replayer::open(snapshot);
  EXPECT_TRUE(replayer.ok()) << replayer.error().text();
  if (!replayer) return {};
  return diagnose(make_case(*replayer), reproduction_of(verify(*replayer)), sample + ".h5");
}

/// The sample is explained in full: bit for bit, with evidence, and with a fix that was verified on it.
inline void expect_sample(const std::string& sample, const Expected& e) {
  const Verdict v = sample_verdict(sample, 1);
  EXPECT_TRUE(v.reproduction.bit_exact);
  EXPECT_EQ(v.reproduction.mismatched, 0);
  EXPECT_GT(v.reproduction.outputs_compared, 10);
  EXPECT_EQ(v.cause, e.cause) << v.explanation;
  EXPECT_EQ(v.phase, e.phase);
  EXPECT_EQ(v.culprit.op, e.op);
  EXPECT_EQ(v.culprit.module, e.module);
  EXPECT_EQ(v.origin, e.origin);
  EXPECT_EQ(v.precision.verdict, e.precision);
  EXPECT_EQ(v.poison, e.poison);
  EXPECT_GT(v.culprit.count, 0u);
  EXPECT_FALSE(v.evidence.empty());
  for (const Evidence& evidence : v.evidence)
    EXPECT_TRUE(evidence.limit.empty() || std::stod(evidence.limit) > 0)
        << evidence.name << ": " << evidence.value << " is held against a limit of " << evidence.limit;
  EXPECT_GE(v.confidence, kLeastConfidence);
  std::string open;
  for (const std::string& note : v.not_tested) open += note + "\n";
  ASSERT_TRUE(v.fix.has_value()) << open;
  EXPECT_TRUE(v.fix->verified && v.fix->placebo_failed && v.fix->minimal);
  EXPECT_FALSE(v.fix->advice.empty());
}

/// A step that computes this loss and goes back through it. `notes` as in Incident.
inline Incident backward_of(const StepState& state, const std::function<at::Tensor()>& loss,
                            const std::map<std::string, std::string>& notes = {}) {
  for (const auto& [name, parameter] : state.parameters) at::Tensor(parameter).mutable_grad().reset();
  return Incident(
      state,
      [&] {
        const at::Tensor l = loss();
        l.backward();
        return l;
      },
      notes);
}

/// The same with one trained tensor, which is named: what is not named can't be harmed.
inline Incident trained(const at::Tensor& w, const std::function<at::Tensor()>& loss) {
  StepState state;
  state.parameters = {{"w", w}};
  return backward_of(state, loss);
}

/// The step's culprit is `op` and its cause this one; UNKNOWN is a label as any other.
inline void expect_cause(const Incident& incident, Label label, const std::string& op = "") {
  ASSERT_FALSE(incident.doc().culprit.value.empty()) << "the step should hold something harmful";
  const Finding f = incident.finding();
  EXPECT_EQ(word(f.label), word(label)) << f.explanation;
  const Case c = incident.make();
  ASSERT_NE(c.op(), nullptr);
  EXPECT_EQ(c.op()->name, op.empty() ? c.op()->name : op);
  EXPECT_FALSE(label != Label::unknown && (f.evidence.empty() || f.advice.empty() || f.explanation.empty()));
}

/// As expect_cause, and what the cause wants to be changed makes the step finite.
inline void expect_healed(const Incident& incident, Label label, const std::string& op = "") {
  expect_cause(incident, label, op);
  const Case c = incident.make();
  const Finding found = incident.finding();
  bool healed = false;
  std::string tried;
  for (const Change& change : found.wanted) {
    healed = healed || run_change(c, change.options) == TrialResult::finite;
    tried += change.text + "; ";
  }
  EXPECT_TRUE(healed) << "none of these: " << tried;
}

/// The step ends in UNKNOWN.
inline void expect_unknown(const Incident& incident) {
  ASSERT_FALSE(incident.doc().culprit.value.empty()) << "the step should hold something harmful";
  const Finding f = incident.finding();
  EXPECT_EQ(f.label, Label::unknown) << f.explanation;
}

}  // namespace nanquest::testing
