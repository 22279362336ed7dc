// What a diagnosis says beside the cause, and the searches for samples and modules.
#include "probe/snapshot/reader.h"
#include "replay/cause/samples.h"
#include "tests/replay/diagnose/sample.h"

namespace nanquest {
namespace {

using testing::Incident;
using testing::kNaN;
using testing::leaf;

TEST(Diagnose, HealthyStepIsNoFinding) {
  const at::Tensor w = leaf(at::ones({3, 3}));
  const Verdict v = Incident({}, [&] {
                      const at::Tensor loss = at::mm(w, w).sum();
                      loss.backward();
                      return loss;
                    }).verdict();
  EXPECT_FALSE(v.found);
  EXPECT_TRUE(v.reproduction.bit_exact);
}

TEST(Diagnose, OfALossThatIsASumTheBadTermIsNamed) {
  const at::Tensor w = leaf(at::full({4}, 2.f)), zero = at::zeros({4});
  StepState state;
  state.parameters = {{"w", w}};
  state.batch = {{"zero", zero}};
  const auto evidence = [&](const std::function<at::Tensor()>& loss) {
    std::map<std::string, std::string> found;
    const Verdict verdict = testing::backward_of(state, loss).verdict();
    for (const Evidence& e : verdict.evidence) found[e.name] = e.value;
    return found;
  };
  const auto summed = evidence([&] {
    const at::Tensor kept = w.square().sum(), bad = (w / zero).log().neg().mean();
    const at::Tensor third = w.abs().amax();
    return (kept + bad * 0.5 + at::stack({third, kept}).sum()) / 2;
  });
  EXPECT_EQ(summed.at("terms of the loss that are not finite").find("aten::mean"), 0u);
  EXPECT_NE(summed.at("terms that are").find("aten::sum"), std::string::npos);
  EXPECT_NE(summed.at("terms that are").find("aten::amax"), std::string::npos);
  EXPECT_EQ(summed.at("terms that are").find("aten::mean"), std::string::npos);
  // A mean over samples is no sum of terms.
  EXPECT_EQ(evidence([&] { return (w / zero).log().mean(); }).count("terms that are"), 0u);
}

TEST(Diagnose, GrowthMakesItDelayedAndSaysWhatOneStepCantShow) {
  const at::Tensor w = leaf(at::full({4, 4}, 300.f)), x = at::full({2, 4}, 200.f);
  StepState state;
  SeriesTable norms{"grad_norm", {"a", "b"}, {}};
  for (int i = 0; i < 40; ++i) {
    norms.values.push_back(1.0);
    norms.values.push_back(i == 20 ? kNaN : std::exp2(i * 0.25));
  }
  state.history = {norms};
  const Verdict v = Incident(state, [&] {
                      const at::Tensor loss =
                          at::softmax(at::mm(x.to(at::kHalf), w.to(at::kHalf)).to(at::kFloat), 1).sum();
                      loss.backward();
                      return loss;
                    }).verdict();
  EXPECT_EQ(v.cause, Label::fp16_overflow);
  EXPECT_EQ(v.precision.verdict, PrecisionVerdict::delayed);
  bool series = false, root = false;
  for (const Evidence& e : v.evidence)
    series = series || (e.series.size() == 40 && e.name.find("grad_norm of b") != std::string::npos);
  for (const std::string& line : v.not_tested) root = root || line.find("root cause") != std::string::npos;
  EXPECT_TRUE(series);
  EXPECT_TRUE(root);
}

TEST(Diagnose, AnOpWithoutAKernelInAnotherFormatSpoilsNoRun) {
  // LibTorch quantises only fp32.
  const at::Tensor w = leaf(at::full({4}, 300.f)), x = at::linspace(-1, 1, 4);
  const Incident incident({}, [&] {
    const at::Tensor coarse = at::fake_quantize_per_tensor_affine(x, 0.1, 0, -128, 127) +
                              at::dequantize(at::quantize_per_tensor(x, 0.1, 0, at::kQInt8));
    const at::Tensor loss =
        (at::softmax((w.to(at::kHalf) * w.to(at::kHalf)).to(at::kFloat), 0) * coarse).sum();
    loss.backward();
    return loss;
  });
  const Verdict v = incident.verdict();
  EXPECT_EQ(v.cause, Label::fp16_overflow) << v.explanation;
  EXPECT_EQ(v.precision.fp32, PrecisionResult::finite);
  EXPECT_EQ(v.precision.fp64, PrecisionResult::finite);
}

TEST(Diagnose, AfterACrashNothingIsTriedAndThatIsSaid) {
  const at::Tensor w = leaf(at::full({4}, 300.f));
  const Incident incident =
      testing::trained(w, [&] { return w.to(at::kHalf).square().to(at::kFloat).sum(); });
  const Case c = make_case(incident.replayer(), {.seconds = 1e-9});
  const auto recorded = reproduction_of(verify(incident.replayer()));
  EXPECT_EQ(c.lab()->runs(), 1) << "as recorded";
  const Verdict v = diagnose(c, recorded, "memory", {.crash = "Illegal instruction while: a kernel"});
  EXPECT_TRUE(v.found);
  EXPECT_EQ(v.culprit.op, "aten::pow") << v.culprit.op;
  EXPECT_EQ(v.precision.fp32, PrecisionResult::not_run);
  EXPECT_TRUE(v.counterfactuals.empty());
  EXPECT_TRUE(c.trials().empty());
  const bool said = std::any_of(v.not_tested.begin(), v.not_tested.end(), [](const std::string& note) {
    return note.find("a kernel crashed (Illegal instruction while: a kernel)") != std::string::npos;
  });
  EXPECT_TRUE(said);
}

TEST(Bisect, FindsTheTwoSamplesAndTheModule) {
  at::Tensor x = at::rand({6, 4});
  x[1] *= 60000, x[4] *= 60000;
  const at::Tensor w = leaf(at::full({4, 4}, 2.f)), v = leaf(at::ones({4, 4}));
  StepState state;
  state.parameters = {{"w", w}, {"v", v}};
  state.batch = {{"x", x}};
  const Incident incident(state, [&] {
    at::Tensor h, g;
    {
      ModuleScope scope("a", "Linear");
      g = at::mm(at::ones({6, 4}, at::kHalf), v.to(at::kHalf)).to(at::kFloat);
    }
    {
      ModuleScope scope("b", "Linear");
      h = at::mm((x.to(at::kHalf)), w.to(at::kHalf)).to(at::kFloat);
    }
    const at::Tensor loss = at::log_softmax(h, 1).sum() + g.sum();
    loss.backward();
    return loss;
  });
  const Case c = incident.make();
  const SampleBisection samples = bisect_samples(c, 100);
  EXPECT_EQ(samples.poison, (std::vector<std::int64_t>{1, 4})) << samples.note;
  ASSERT_EQ(samples.tried.size(), 2u);
  EXPECT_EQ(samples.tried[0].result, TrialResult::finite) << samples.tried[0].change;
  EXPECT_EQ(samples.tried[1].kind, ChangeKind::placebo);
  EXPECT_EQ(samples.tried[1].result, TrialResult::non_finite) << samples.tried[1].change;
  const ModuleBisection modules = bisect_modules(c, 100);
  EXPECT_TRUE(modules.finite_with_all);
  EXPECT_EQ(modules.modules, (std::vector<std::string>{"b"}));
}

TEST(Unwatched, TheReplayFileHasItsStatistics) {
  const testing::Scratch scratch("unwatched");
  const at::Tensor x = at::tensor({1.0f, 0.0f});
  const at::Tensor w = at::ones({2}).set_requires_grad(true);
  StepState state;
  state.step = 7;
  state.batch = {{"x", x}};
  state.parameters = {{"w", w}};
  const auto step = [&] {
    const at::Tensor loss = (w * x).log().sum();
    loss.backward();
    return loss;
  };
  Recording recording = record_step(state, step, {.watch = false, .stacks = false});
  recording.doc.basis = "survivors";
  ASSERT_EQ(recording.doc.culprit.op, kNone);
  ASSERT_TRUE(write_snapshot(recording, scratch / "blind.h5"));
  const std::string command =
      std::string(NANQUEST_REPLAY) + " -q --no-fixes '" + (scratch / "blind.h5") + "'";
  EXPECT_EQ(testing::run_program(command, scratch).code, 1);
  const auto reader = SnapshotReader::open(scratch / "blind.replay.h5");
  ASSERT_TRUE(reader.ok()) << reader.error().text();
  const SnapshotDoc& doc = reader->doc();
  ASSERT_EQ(doc.ops.size(), recording.doc.ops.size());
  ASSERT_NE(doc.culprit.op, kNone);
  const OpRow& log = doc.ops[static_cast<std::size_t>(doc.culprit.op)];
  EXPECT_EQ(log.name, "aten::log");
  const std::int32_t row = doc.written[static_cast<std::size_t>(log.first_written)];
  EXPECT_EQ(doc.stats[static_cast<std::size_t>(doc.tensors[static_cast<std::size_t>(row)].stats)].neg_inf,
            1u);
}

}  // namespace
}  // namespace nanquest
