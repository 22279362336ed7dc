// HARDWARE: its sample, its variants, and what looks like it and is not.
#include "tests/replay/diagnose/sample.h"

namespace nanquest {
namespace {

using testing::leaf;

TEST(Hardware, ItsSampleIsExplained) {
  const Verdict v = testing::sample_verdict("hardware", 1);
  EXPECT_EQ(v.cause, Label::hardware) << v.explanation;
  EXPECT_EQ(v.culprit.op, "aten::mm");
  EXPECT_EQ(v.culprit.module, "fc2");
  EXPECT_FALSE(v.reproduction.bit_exact);
  EXPECT_EQ(v.reproduction.first_mismatch, v.culprit.index);
  EXPECT_EQ(v.precision.verdict, PrecisionVerdict::not_a_precision_matter);
  // Computed again it is finite; with the recorded value put back it is not: that value did it.
  ASSERT_TRUE(v.fix.has_value());
  EXPECT_TRUE(v.fix->verified && v.fix->placebo_failed);
  EXPECT_GT(v.evidence.size(), 4u);
  EXPECT_EQ(
      std::count_if(v.evidence.begin(), v.evidence.end(),
                    [](const Evidence& e) { return e.name.find("without oneDNN") != std::string::npos; }),
      1);
}

/// A healthy step of a few ops, recorded; `damage` then changes what was recorded of the op `name`.
Finding damaged(const std::string& name, const std::function<at::Tensor(const at::Tensor& w)>& forward,
                const std::function<void(SnapshotDoc&)>& more = {}) {
  const at::Tensor w = leaf(at::rand({4, 4}) + 1), x = at::rand({4, 4});
  StepState state;
  state.parameters = {{"w", w}};
  state.batch = {{"x", x}};
  Recording recording = record_step(state, [&] {
    const at::Tensor loss = forward(at::mm(x + 1, w)).sum();
    loss.backward();
    return loss;
  });
  SnapshotDoc doc = recording.doc;
  // As it would have been recorded, had this op made a NaN that later ops carried on to the gradient.
  std::int32_t bad = kNone;
  for (std::size_t i = 0; i < doc.ops.size(); ++i) {
    OpRow& op = doc.ops[i];
    const bool guilty = bad == kNone && op.name == name;
    if (guilty) bad = static_cast<std::int32_t>(i), op.flags |= kOpBirth | kOpBirthStays;
    if (bad == kNone) continue;
    for (std::int32_t k = 0; k < op.written_count; ++k) {
      TensorRow& row =
          doc.tensors[static_cast<std::size_t>(doc.written[static_cast<std::size_t>(op.first_written + k)])];
      if (row.stats == kNone) continue;
      StatsRow stats = doc.stats[static_cast<std::size_t>(row.stats)];
      stats.nan = 1, stats.first_bad = 0, stats.hash ^= 1;
      row.stats = static_cast<std::int32_t>(doc.stats.size());
      doc.stats.push_back(stats);
    }
  }
  EXPECT_NE(bad, kNone);
  doc.culprit = {};
  doc.culprit.op = bad;
  doc.culprit.phase = Phase::forward;
  doc.culprit.value = "nan";
  doc.culprit.count = 1;
  if (more) more(doc);
  auto replayer = Replayer::from_memory(doc, {recording.data.begin(), recording.data.end()});
  EXPECT_TRUE(replayer.ok());
  return find_cause(make_case(*replayer)).finding;
}

TEST(Hardware, AnyDeterministicOpWhoseInputsCameBack) {
  for (const char* name : {"aten::exp", "aten::mm", "aten::sum"}) {
    const Finding f = damaged(name, [](const at::Tensor& h) { return at::exp(h); });
    EXPECT_EQ(f.label, Label::hardware) << name << ": " << f.explanation;
  }
  const Finding f = damaged("aten::softplus", [](const at::Tensor& h) { return at::softplus(h); });
  EXPECT_EQ(f.label, Label::hardware) << f.explanation;
}

TEST(Hardware, AnOpOnTheBatchItselfIsNotForOthersMayWriteThatMeanwhile) {
  const Finding f = damaged("aten::add", [](const at::Tensor& h) { return at::exp(h); });
  EXPECT_EQ(f.label, Label::unknown) << f.explanation;
  EXPECT_NE(f.explanation.find("did not come back"), std::string::npos) << f.explanation;
}

TEST(Hardware, OpsThatDrawOrAddInAnyOrderAreNot) {
  EXPECT_NE(damaged("aten::bernoulli",
                    [](const at::Tensor& h) {
                      return h * at::bernoulli(at::full({4, 4}, 0.5));
                    })
                .label,
            Label::hardware);
  const at::Tensor rows = at::tensor({0, 1, 0, 1}, at::kLong);
  EXPECT_NE(damaged("aten::index_add",
                    [&](const at::Tensor& h) {
                      return at::index_add(at::zeros({2, 4}), 0, rows, h);
                    })
                .label,
            Label::hardware);
}

TEST(Hardware, AnotherVersionOrThreadCountIsNot) {
  for (const char* key : {"torch_version", "num_threads", "cpu_capability"}) {
    const Finding f = damaged(
        "aten::exp", [](const at::Tensor& h) { return at::exp(h); },
        [&](SnapshotDoc& doc) { doc.environment[key] = "3"; });
    EXPECT_NE(f.label, Label::hardware) << key;
  }
}

TEST(Hardware, ADifferenceThatBeganEarlierIsNot) {
  const Finding f = damaged(
      "aten::exp", [](const at::Tensor& h) { return at::exp(h); },
      [](SnapshotDoc& doc) {
        for (const OpRow& op : doc.ops)
          if (op.name == "aten::mm")
            for (StatsRow& s : doc.stats)
              if (&s == &doc.stats[static_cast<std::size_t>(
                            doc.tensors[static_cast<std::size_t>(
                                            doc.written[static_cast<std::size_t>(op.first_written)])]
                                .stats)])
                s.hash ^= 1;
      });
  EXPECT_NE(f.label, Label::hardware) << f.explanation;
}

TEST(Hardware, AValueThatComesBackTheSameIsNot) {
  const at::Tensor w = leaf(at::tensor({0.f, 1.f}));
  StepState state;
  state.parameters = {{"w", w}};
  const testing::Incident incident(state, [&] {
    const at::Tensor loss = at::log(w).sum();
    loss.backward();
    return loss;
  });
  EXPECT_EQ(incident.finding().label, Label::log_zero);
}

}  // namespace
}  // namespace nanquest
