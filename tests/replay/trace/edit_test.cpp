// One thing changed in a run: precision of an op or a module, an outside value, an op.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "probe/observe/module_scope.h"
#include "tests/replay/trace/programs.h"

namespace nanquest::testing {
namespace {

/// fp16 throughout; the square in module "hot" overflows, the sum of its logarithm would not.
Step overflowing() {
  const at::Tensor x = at::full({4}, 300.0, at::kHalf);
  Step step;
  step.state.batch = {{"x", x}};
  step.run = [=] {
    at::Tensor h;
    {
      const ModuleScope hot("hot", "Square");
      h = x * x;
    }
    const ModuleScope head("head", "Log");
    return at::log(h).sum();
  };
  return step;
}

std::int32_t find_op(const SnapshotDoc& doc, const std::string& name) {
  for (std::size_t i = 0; i < doc.ops.size(); ++i)
    if (doc.ops[i].name == name) return static_cast<std::int32_t>(i);
  return kNone;
}

const double kExpected = 4 * std::log(90000.0);

TEST(Edit, TheOverflowIsTheBirthAndWidePrecisionCuresIt) {
  const Replayer replayer = replayer_of(record(overflowing()));
  const std::int32_t square = find_op(replayer.doc(), "aten::mul");
  const RunResult same = replayer.run({});
  EXPECT_FALSE(same.loss_finite);
  EXPECT_EQ(same.first_inf, square);
  EXPECT_EQ(same.first_nan, kNone);
  EXPECT_EQ(same.births, std::vector<std::int32_t>{square});
  const RunResult wide = replayer.run({.precision = Precision::fp32});
  EXPECT_TRUE(wide.finite());
  EXPECT_NEAR(wide.loss, kExpected, 1e-4);
}

TEST(Edit, OneOpInFp32IsRoundedBackByTheNextReader) {
  const Replayer replayer = replayer_of(record(overflowing()));
  RunOptions options;
  options.edit.op_precision[find_op(replayer.doc(), "aten::mul")] = Precision::fp32;
  const RunResult run = replayer.run(options);
  // The product is finite in fp32, but log still wants fp16: it is the reader that gets an Inf now.
  EXPECT_FALSE(run.loss_finite);
  EXPECT_EQ(run.first_inf, find_op(replayer.doc(), "aten::log"));
  options.edit.op_precision[find_op(replayer.doc(), "aten::log")] = Precision::fp32;
  const RunResult both = replayer.run(options);
  EXPECT_TRUE(both.finite());
  EXPECT_NEAR(both.loss, kExpected, 0.05);  // the sum is rounded to fp16
}

TEST(Edit, ModulesAreChosenByPath) {
  const Replayer replayer = replayer_of(record(overflowing()));
  RunOptions options;
  options.edit.module_precision["ho"] = Precision::fp32;  // no module of that name: a prefix of one is not it
  EXPECT_FALSE(replayer.run(options).finite());
  options.edit.module_precision = {{"hot", Precision::fp32}, {"head", Precision::fp32}};
  EXPECT_TRUE(replayer.run(options).finite());
  options.edit.module_precision = {{"", Precision::fp32},
                                   {"hot", Precision::as_recorded}};  // the longest path wins
  EXPECT_FALSE(replayer.run(options).finite());
}

TEST(Edit, AnOutsideValueCanBeChanged) {
  const Replayer replayer = replayer_of(record(overflowing()));
  RunOptions options;
  options.edit.slot_edit[replayer.doc().batch.at(0).slot] = [](at::Tensor& x) {
    EXPECT_EQ(x.scalar_type(), at::kHalf);
    x.fill_(2);
  };
  EXPECT_NEAR(replayer.run(options).loss, 4 * std::log(4.0), 0.01);
  EXPECT_TRUE(verify(replayer).mismatched == 0);  // the stored value is untouched
}

TEST(Edit, AnOpCanBeReplacedOrItsInputsChanged) {
  const Replayer replayer = replayer_of(record(overflowing()));
  RunOptions options;
  options.edit.op_edit[find_op(replayer.doc(), "aten::mul")] = [](std::vector<c10::IValue>& stack) {
    const at::Tensor out = stack[0].toTensor() * 10;
    stack.clear();
    stack.emplace_back(out);
    return true;
  };
  EXPECT_NEAR(replayer.run(options).loss, 4 * std::log(3000.0), 0.05);
  options.edit.op_edit[find_op(replayer.doc(), "aten::mul")] = [](std::vector<c10::IValue>& stack) {
    stack[0] = stack[0].toTensor().clamp_max(100);
    return false;
  };
  EXPECT_NEAR(replayer.run(options).loss, 4 * std::log(30000.0), 0.05);
}

TEST(Edit, InPlaceOpsOfMixedPoliciesLoseNothing) {
  const at::Tensor x = at::full({4}, 3.0, at::kHalf);
  Step step;
  step.state.batch = {{"x", x}};
  step.run = [=] {
    auto h = x + 0.0;
    h.mul_(30000.0);  // overflows in fp16
    h.narrow(0, 0, 2).mul_(0.5);
    h.mul_(1e-4);
    return h.sum();
  };
  const Replayer replayer = replayer_of(record(step));
  EXPECT_TRUE(verify(replayer).bit_exact);
  std::vector<std::int32_t> products;
  for (std::size_t i = 0; i < replayer.doc().ops.size(); ++i)
    if (replayer.doc().ops[i].name == "aten::mul_") products.push_back(static_cast<std::int32_t>(i));
  ASSERT_EQ(products.size(), 3u);
  RunOptions options;
  for (const std::int32_t op : products) options.edit.op_precision[op] = Precision::fp32;
  const RunResult run = replayer.run(options);
  EXPECT_TRUE(run.finite());
  EXPECT_NEAR(run.loss, 2 * 4.5 + 2 * 9.0, 0.02);
  // With the middle one as recorded, its half of the slot overflows when it is read in fp16; the other half,
  // which the op does not touch, is kept.
  options.edit.op_precision.erase(products[1]);
  at::Tensor last;
  options.on_op = [&](std::int32_t op, const std::vector<at::Tensor>& outputs) {
    if (op == products[2]) last = outputs[0].clone();
  };
  EXPECT_FALSE(replayer.run(options).finite());
  EXPECT_TRUE(std::isinf(last[0].item<double>()));
  EXPECT_NEAR(last[3].item<double>(), 9.0, 0.01);
}

TEST(Edit, StopAfterRunsNothingLater) {
  const Replayer replayer = replayer_of(record(program("mlp").make(0, at::kFloat)));
  RunOptions options;
  options.stop_after = 2;
  const RunResult run = replayer.run(options);
  EXPECT_TRUE(run.ops[2].ran);
  EXPECT_FALSE(run.ops[3].ran);
  EXPECT_EQ(run.failed, 0);
}

}  // namespace
}  // namespace nanquest::testing
