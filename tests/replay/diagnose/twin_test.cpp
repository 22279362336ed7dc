// The step on the batch of the last healthy one, from files that a training's probe wrote.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "probe/nanquest.h"
#include "replay/cause/diagnose.h"
#include "replay/report/report.h"
#include "tests/replay/diagnose/programs.h"

namespace nanquest {
namespace {

using testing::Scratch;

/// A training whose steps 0, 1 and 2 are healthy; `spoil` does something before step 3.
struct Training {
  Training() {
    at::manual_seed(7);
    w = (at::randn({4, 6}) * 0.3).set_requires_grad(true);
    table = (at::randn({5, 6}) * 0.3).set_requires_grad(true);
  }

  std::function<at::Tensor()> loss = [this] { return at::mse_loss(at::linear(x, w), y); };
  at::Tensor w, table, x, y, mask;
  std::vector<std::string> ids;  ///< of samples that a loader drew

  void new_batch() {
    x = at::randn({3, 6});
    y = at::randn({3, 4});
    mask = at::ones({3, 4});
    mask[0][1] = mask[2][3] = 0;
  }

  /// The file of step 3.
  std::string run(const Scratch& scratch, const std::function<void()>& spoil, Level level = Level::trace) {
    auto probe = Probe::create({.run_dir = scratch / "run", .level = level}).value();
    probe->watch_parameter("w", w);
    probe->watch_parameter("table", table);
    std::string file;
    for (std::int64_t step = 0; step < 4; ++step) {
      new_batch();
      if (step == 3) spoil();
      const StepReport report = probe->step({.step = step, .batch = {{"x", x}, {"y", y}}, .sample_ids = ids}, [&] {
        at::Tensor l = loss();
        l.backward();
        return l;
      });
      EXPECT_EQ(report.ok(), step < 3) << report.summary;
      file = report.incident;
      if (!report.ok()) continue;
      const at::NoGradGuard no_grad;
      for (at::Tensor* p : {&w, &table})
        if (p->grad().defined()) p->sub_(p->grad(), 0.01);
    }
    EXPECT_TRUE(probe->finish("done"));
    EXPECT_FALSE(file.empty());
    return file;
  }
};

struct Diagnosed {
  explicit Diagnosed(const std::string& file, LabLimits limits = {})
      : replayer(Replayer::open(file).value()),
        made(make_case(replayer, limits)),
        verdict(diagnose(made, reproduction_of(verify(replayer)), file)) {}
  std::string evidence(const std::string& name) const {
    for (const Evidence& e : verdict.evidence)
      if (e.name.find(name) != std::string::npos) return e.value;
    return "";
  }
  OpId find(const std::string& name) const {
    for (const OpId op : made.graph().ops())
      if (made.graph().op(op).name == name) return op;
    return {};
  }
  Replayer replayer;
  Case made;
  Verdict verdict;
};

TEST(TwinRun, IsHealthyWhereTheBatchIsPoisoned) {
  for (const Level level : {Level::trace, Level::watch}) {
    const Scratch scratch("twin_batch");
    Training t;
    const Diagnosed d(t.run(
        scratch, [&] { t.x[1][2] = std::nan(""); }, level));
    EXPECT_EQ(d.verdict.cause, Label::bad_data) << d.verdict.explanation;
    ASSERT_NE(d.made.twin(), nullptr);
    EXPECT_EQ(d.made.twin()->step(), 2);
    EXPECT_EQ(d.made.twin()->health(), TwinRun::Health::well);
    EXPECT_EQ(d.evidence("the same step with the batch of step 2"), "healthy");
    EXPECT_NE(to_text(d.verdict).find("the same step with the batch of step 2: healthy"), std::string::npos);
    EXPECT_TRUE(d.verdict.reproduction.bit_exact);
  }
}

TEST(TwinRun, GivesWhatABatchOfNothingButNanCantGive) {
  // Any one number in the place of all would have a standard deviation of 0.
  const Scratch scratch("twin_donor");
  Training t;
  t.loss = [&] {
    const at::Tensor normal = (t.x - at::mean(t.x, 1, true)) / at::std(t.x, at::IntArrayRef{1}, true, true);
    return at::mse_loss(at::linear(normal, t.w), t.y);
  };
  t.ids = {"a", "b", "c"};
  const Diagnosed d(t.run(scratch, [&] { t.x.fill_(std::nan("")); }));
  EXPECT_EQ(d.verdict.cause, Label::bad_data) << d.verdict.explanation;
  EXPECT_EQ(d.verdict.culprit.tensor, "x");
  EXPECT_EQ(d.verdict.origin, Origin::input);
  ASSERT_TRUE(d.verdict.fix.has_value());
  EXPECT_NE(d.verdict.fix->change.find("replaced by what step 2 had there"), std::string::npos)
      << d.verdict.fix->change;
  EXPECT_TRUE(d.verdict.fix->verified && d.verdict.fix->placebo_failed);
}

TEST(TwinRun, ABatchThatIsMuchLargerIsNoGrowth) {
  // Gradients grow 32-fold from step to step; this batch is 16 times or ten million times as large as the
  // last.
  for (const double times : {16., 1e7}) {
    const Scratch scratch("twin_growth");
    Training t;
    at::Tensor factor = at::full({}, 1e-14);
    t.loss = [&] {
      factor = factor * 32;
      return at::mse_loss((at::linear(t.x, t.w) * 1e4).to(at::kHalf).to(at::kFloat), t.y) * factor;
    };
    const Diagnosed d(t.run(scratch, [&] { t.x.mul_(times); }));
    EXPECT_EQ(d.verdict.cause, Label::fp16_overflow) << d.verdict.explanation;
    EXPECT_NE(d.evidence("growth of "), "");
    EXPECT_NE(d.evidence("largest finite input of aten::_to_copy"), "");
    EXPECT_EQ(d.verdict.precision.verdict,
              times > 100 ? PrecisionVerdict::curable : PrecisionVerdict::delayed)
        << d.verdict.explanation;
  }
}

TEST(TwinRun, FailsAsWellWhereAWeightIsBad) {
  const Scratch scratch("twin_weight");
  Training t;
  const Diagnosed d(t.run(scratch, [&] { t.w.data()[1][2] = std::nan(""); }));
  EXPECT_EQ(d.verdict.cause, Label::bad_state) << d.verdict.explanation;
  EXPECT_EQ(d.made.twin()->health(), TwinRun::Health::harmed);
  EXPECT_EQ(d.evidence("the same step with the batch of step 2"), "fails as well: it is not this batch");
}

TEST(TwinRun, ThatFailsAsWellLeavesNoSampleToExchange) {
  const Scratch scratch("twin_large_weight");
  Training t;
  const Diagnosed d(t.run(scratch, [&] { t.w.data().mul_(1e30); }));
  EXPECT_EQ(d.made.twin()->health(), TwinRun::Health::harmed);
  EXPECT_EQ(d.evidence("samples"), "the batch of the step before fails as well, so no samples were exchanged");
  for (const Counterfactual& c : d.verdict.counterfactuals)
    EXPECT_EQ(c.change.find("sample "), std::string::npos) << c.change;
}

TEST(TwinRun, IsWellWhereOnlyThisBatchReadsTheBadWeight) {
  const Scratch scratch("twin_row");
  Training t;
  at::Tensor rows = at::arange(3);
  t.loss = [&] { return at::mse_loss(at::linear(at::index_select(t.table, 0, rows), t.w), t.y); };
  const Diagnosed d(t.run(scratch, [&] {
    t.table.data()[4][0] = std::nan("");
    rows = at::arange(2, 5);
  }));
  EXPECT_EQ(d.made.twin()->health(), TwinRun::Health::well);
  // It tells nothing of what the weight is meant to hold.
  EXPECT_EQ(d.verdict.cause, Label::bad_state) << d.verdict.explanation;
  EXPECT_TRUE(d.verdict.blame.intended.empty());
}

TEST(TwinRun, TellsAnInfinityThatIsThereInHealth) {
  for (const bool one_more : {false, true}) {
    const Scratch scratch("twin_mask");
    Training t;
    t.loss = [&] {
      const at::Tensor scores = at::linear(t.x, t.w) + at::log(t.mask);
      return at::mse_loss(at::softmax(scores, -1), t.y);
    };
    const Diagnosed d(t.run(scratch, [&] {
      t.x[1][2] = std::nan("");
      if (one_more) t.mask[1][1] = 0;
    }));
    Suspect log{d.find("aten::log"), {}, {.infinite = true}};
    ASSERT_TRUE(log.op);
    EXPECT_EQ(d.made.twin()->health(), TwinRun::Health::well);
    EXPECT_EQ(d.made.twin()->has_it_in_health(log), !one_more);
    const RunResult* run = d.made.twin()->run();
    ASSERT_NE(run, nullptr);
    EXPECT_EQ(run->ops[log.op.index()].written[0].neg_inf, 2u);
    EXPECT_EQ(run->ops[log.op.index()].written[0].nan, 0u);
    EXPECT_EQ(d.verdict.cause, Label::bad_data) << d.verdict.explanation;
  }
}

TEST(TwinRun, ThatIsNotHealthyTellsNothingOfWhatIsMeant) {
  const Scratch scratch("twin_unwell");
  Training t;
  t.loss = [&] {
    const at::Tensor scores = at::linear(t.x, t.w) + at::log(t.mask);
    return at::mse_loss(at::softmax(scores, -1), t.y);
  };
  const Diagnosed d(t.run(scratch, [&] { t.w.data()[1][2] = std::nan(""); }));
  EXPECT_EQ(d.made.twin()->health(), TwinRun::Health::harmed);
  EXPECT_FALSE(d.made.twin()->has_it_in_health({d.find("aten::log"), {}, {.infinite = true}}));
}

TEST(TwinRun, SaysHowLargeAnInputIsInHealth) {
  for (const bool zero_beside : {false, true}) {
    const Scratch scratch("twin_large");
    Training t;
    t.loss = [&] {
      const at::Tensor h = at::linear(t.x, t.w).to(at::kHalf);
      const at::Tensor made = zero_beside ? at::addcmul(at::zeros_like(h), h, h) : at::mul(h, h);
      return made.to(at::kFloat).mean();
    };
    const Diagnosed d(t.run(scratch, [&] { t.x.mul_(1000); }));
    EXPECT_EQ(d.verdict.cause, Label::fp16_overflow) << d.verdict.explanation;
    const std::string amax =
        d.evidence(std::string("largest finite input of aten::") + (zero_beside ? "addcmul" : "mul"));
    const std::size_t at = amax.find(" here, ");
    ASSERT_NE(at, std::string::npos) << amax;
    EXPECT_NE(amax.find("on the batch of step 2"), std::string::npos) << amax;
    const double here = std::stod(amax), in_health = std::stod(amax.substr(at + 7));
    EXPECT_GT(here, 255);
    EXPECT_LT(in_health, 10);
    EXPECT_GT(in_health, 0.01);
  }
}

TEST(TwinRun, ReachesAsFarAsTheProgramsWaysAreTheSame) {
  const Scratch scratch("twin_way");
  Training t;
  const std::function<at::Tensor()> plain = t.loss;
  t.loss = [&] {
    const at::Tensor l = plain();
    if (!std::isfinite(l.item<float>())) (void)at::zeros({3}).add(1);  // calls a listener
    return l;
  };
  // The paths diverge before backward: the twin's gradients are unknown.
  const Diagnosed d(t.run(scratch, [&] { t.x[1][2] = std::nan(""); }));
  EXPECT_EQ(d.replayer.doc().twin.step, -1);
  EXPECT_EQ(d.made.twin()->health(), TwinRun::Health::unknown);
  EXPECT_EQ(d.evidence("the same step with"), "");
}

TEST(TwinRun, IsLeftOutWhereTimeIsUp) {
  const Scratch scratch("twin_time");
  Training t;
  const Diagnosed d(t.run(scratch, [&] { t.x[1][2] = std::nan(""); }), {.seconds = 1e-9});
  EXPECT_EQ(d.replayer.doc().twin.step, 2);
  EXPECT_EQ(d.made.twin()->health(), TwinRun::Health::unknown);
  EXPECT_EQ(d.evidence("the same step with"), "");
}

}  // namespace
}  // namespace nanquest
