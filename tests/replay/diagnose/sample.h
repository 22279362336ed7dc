/// What the test of every cause asks: is its sample explained, and what must stay UNKNOWN?
#pragma once

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
  EXPECT_NEAR(v.confidence, 0.99, 1e-9);
  ASSERT_TRUE(v.fix.has_value());
  EXPECT_TRUE(v.fix->verified && v.fix->placebo_failed && v.fix->minimal);
  EXPECT_FALSE(v.fix->advice.empty());
}

/// The step ends in UNKNOWN, and what it says names the cause that it resembles.
inline void expect_unknown(const Incident& incident, const std::string& resembles) {
  ASSERT_FALSE(incident.doc().culprit.value.empty()) << "the step should hold something harmful";
  const Finding f = incident.finding();
  EXPECT_EQ(f.label, Label::unknown) << f.explanation;
  EXPECT_NE(f.explanation.find(resembles), std::string::npos) << f.explanation;
}

}  // namespace nanquest::testing
