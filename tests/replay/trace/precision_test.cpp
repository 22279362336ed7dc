// Replays in another precision, against the same programs run in that precision by PyTorch itself.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "replay/trace/compare.h"
#include "tests/replay/trace/programs.h"

namespace nanquest::testing {
namespace {

double relative(const at::Tensor& a, const at::Tensor& b) {
  return ((a - b).norm() / b.norm().clamp_min(1e-30)).item<double>();
}

class Wide : public ::testing::TestWithParam<Program> {};

TEST_P(Wide, Fp64IsWhatTheProgramGivesInFp64) {
  for (int seed = 0; seed < 2; ++seed) {
    const Replayer replayer = replayer_of(record(GetParam().make(seed, at::kFloat)));
    Gradients gradients(replayer.doc());
    RunOptions options;
    options.precision = Precision::fp64;
    options.on_op = [&](std::int32_t op, const std::vector<at::Tensor>& outputs) {
      gradients.collect(op, outputs);
    };
    const RunResult run = replayer.run(options);
    for (std::size_t i = 0; i < run.ops.size(); ++i)
      EXPECT_EQ(run.ops[i].error, "") << SnapshotDoc::qualified_name(replayer.doc().ops[i]);
    EXPECT_TRUE(run.finite());
    if (GetParam().random) {  // fp64 draws other numbers: only the replay's own fp32 can be the reference
      EXPECT_NEAR(run.loss, replayer.run({}).loss, 1e-5 * std::abs(run.loss));
      continue;
    }
    const Step reference = GetParam().make(seed, at::kDouble);
    const double loss = reference.run().item<double>();
    const double close = GetParam().autocast ? 1e-2 : 1e-10;
    EXPECT_NEAR(run.loss, loss, close * std::abs(loss));
    const auto found = gradients.get();
    int compared = 0;
    for (std::size_t i = 0; i < found.size() && !GetParam().autocast; ++i) {
      if (!found[i].defined()) continue;
      ++compared;
      at::Tensor expected = reference.state.parameters[i].second.grad();
      EXPECT_LT(relative(found[i] / found[i].norm(), expected / expected.norm()), 1e-10)
          << reference.state.parameters[i].first;
    }
    EXPECT_TRUE(GetParam().autocast || compared > 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Precision, Wide, ::testing::ValuesIn(programs()),
                         [](const auto& each) { return each.param.name; });

TEST(Precision, AutocastReplayedInFp64IsTheProgramWithoutAutocast) {
  for (const char* name : {"autocast_fp16", "autocast_bf16"}) {
    const Replayer replayer = replayer_of(record(program(name).make(3, at::kFloat)));
    const double same = replayer.run({}).loss;
    const double wide = replayer.run({.precision = Precision::fp64}).loss;
    const double single = replayer.run({.precision = Precision::fp32}).loss;
    EXPECT_NE(same, single);                           // 16 bits did round
    EXPECT_NEAR(single, wide, 1e-6 * std::abs(wide));  // and fp32 is close to fp64
    EXPECT_NEAR(same, wide, 3e-2 * std::abs(wide));
  }
}

TEST(Precision, Bf16ReplacesOnlyFp16) {
  const Replayer half = replayer_of(record(program("autocast_fp16").make(3, at::kFloat)));
  std::map<at::ScalarType, int> seen;
  RunOptions options;
  options.precision = Precision::bf16;
  options.on_op = [&](std::int32_t, const std::vector<at::Tensor>& outputs) {
    for (const at::Tensor& t : outputs)
      if (t.defined()) ++seen[t.scalar_type()];
  };
  const RunResult run = half.run(options);
  EXPECT_EQ(run.failed, 0);
  EXPECT_EQ(seen[at::kHalf], 0);
  EXPECT_GT(seen[at::kBFloat16], 0);
  EXPECT_GT(seen[at::kFloat], 0);
}

TEST(Precision, RandomMasksAreTheRecordedOnes) {
  const Recording recording = record(program("dropout").make(4, at::kFloat));
  const Replayer replayer = replayer_of(recording);
  const auto masks = [&](Precision precision) {
    std::vector<at::Tensor> found;
    RunOptions options;
    options.precision = precision;
    options.on_op = [&](std::int32_t op, const std::vector<at::Tensor>& outputs) {
      const OpRow& row = replayer.doc().ops[static_cast<std::size_t>(op)];
      if (row.name == "aten::bernoulli_" || row.name == "aten::native_dropout")
        found.push_back(outputs.back().ne(0));
      if (row.name == "aten::randn_like" || row.name == "aten::rand")
        found.push_back(outputs[0].to(at::kDouble));
    };
    (void)replayer.run(options);
    return found;
  };
  const auto same = masks(Precision::as_recorded), wide = masks(Precision::fp64);
  ASSERT_GE(same.size(), 2u);
  ASSERT_EQ(same.size(), wide.size());
  for (std::size_t i = 0; i < same.size(); ++i) EXPECT_TRUE(at::equal(same[i], wide[i]));
}

TEST(Precision, LocalErrorIsAnOpsOwn) {
  const Replayer replayer = replayer_of(record(program("autocast_bf16").make(5, at::kFloat)));
  RunOptions options;
  options.precision = Precision::fp64;
  options.local = true;
  const auto local = compare(replayer, options);
  ASSERT_TRUE(local.ok()) << local.error().text();
  EXPECT_EQ(local->other.failed, 0);
  options.local = false;
  const auto propagated = compare(replayer, options);
  ASSERT_TRUE(propagated.ok());
  ASSERT_EQ(local->rows.size(), propagated->rows.size());
  // bf16 keeps 8 bits: on its recorded inputs a matrix product is off by its own rounding only, the
  // propagated run is off by all roundings before it as well.
  double own = 0, inherited = 0;
  int products = 0;
  for (std::size_t i = 0; i < local->rows.size(); ++i) {
    const OpRow& op = replayer.doc().ops[static_cast<std::size_t>(local->rows[i].op)];
    if (op.name != "aten::mm" && op.name != "aten::addmm") continue;
    ++products;
    own = std::max(own, local->rows[i].difference.max_ulp);
    inherited = std::max(inherited, propagated->rows[i].difference.max_ulp);
  }
  EXPECT_GT(products, 4);
  EXPECT_LE(own, 1.0);
  EXPECT_GT(inherited, 1.0);
}

TEST(Precision, MemoryUsedAsSeveralDtypesStaysAsRecordedAndSaysSo) {
  const at::Tensor x = at::randn({6}).set_requires_grad(false);
  Step step;
  step.state.batch = {{"x", x}};
  step.run = [=] {
    auto copy = x.clone();
    auto bits = copy.view(at::kInt);
    bits.bitwise_and_(0x7fffffff);  // clears the signs
    return copy.sum();
  };
  const Replayer replayer = replayer_of(record(step));
  EXPECT_TRUE(verify(replayer).bit_exact);
  const RunResult wide = replayer.run({.precision = Precision::fp64});
  EXPECT_EQ(wide.failed, 0);
  EXPECT_NEAR(wide.loss, x.abs().sum().item<double>(), 1e-5);
  bool said = false;
  for (const OpOutcome& op : wide.ops) said = said || op.note.find("several dtypes") != std::string::npos;
  EXPECT_TRUE(said);
}

TEST(Precision, PairsGrowTogether) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    at::manual_seed(7);
    const at::Tensor x = at::randn({6, 2}).to(type);
    Step step;
    step.state.batch = {{"x", x}};
    step.run = [=] {
      auto copy = x.clone();
      at::view_as_complex(copy).select(0, 2).zero_();  // written as a complex number, read as two reals
      return (at::view_as_real(at::view_as_complex(copy)) * 3).sum();
    };
    const Replayer replayer = replayer_of(record(step));
    EXPECT_TRUE(verify(replayer).bit_exact);
    at::Tensor kept = x.to(at::kDouble).clone();
    kept.select(0, 2).zero_();
    const double exact = 3 * kept.sum().item<double>();
    for (const Precision p : {Precision::bf16, Precision::fp32, Precision::fp64}) {
      const RunResult run = replayer.run({.precision = p});
      EXPECT_EQ(run.failed, 0);
      for (const OpOutcome& op : run.ops) EXPECT_EQ(op.note, "");
      const double unit = p == Precision::fp64 || type == at::kDouble ? 1e-14 : 1e-6;
      EXPECT_NEAR(run.loss, exact, unit * 3 * kept.abs().sum().item<double>());
    }
  }
}

}  // namespace
}  // namespace nanquest::testing
