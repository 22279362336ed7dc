// Kernels that hand memory of their own to their backward: it is kept only while autograd is on, and parts of
// it may hold whatever was there before.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/replay/trace/programs.h"

namespace nanquest::testing {
namespace {

/// Memory that is given out next is full of NaN.
void spoil_free_memory() {
  std::vector<at::Tensor> held;
  for (int round = 0; round < 8; ++round)
    for (std::int64_t n = 1; n <= 4096; n *= 2)
      held.push_back(at::full({n}, std::numeric_limits<float>::quiet_NaN()));
}

void expect_back_bit_for_bit(const Step& step) {
  const Recording recording = record(step);
  ASSERT_EQ(recording.failure, "");
  const Replayer replayer = replayer_of(recording);
  spoil_free_memory();
  const VerifyResult result = verify(replayer);
  EXPECT_TRUE(result.bit_exact) << result.mismatched << " differ, " << result.failed_ops << " failed";
  spoil_free_memory();
  EXPECT_TRUE(replayer.run({}).births.empty()) << "an untouched place was taken for a NaN";
  EXPECT_TRUE(recording.doc.culprit.value.empty());
}

Step lstm(bool frozen) {
  at::manual_seed(3);
  Step step;
  std::vector<at::Tensor> weights;
  for (const at::IntArrayRef sizes : std::vector<std::vector<std::int64_t>>{{20, 4}, {20, 5}, {20}, {20}}) {
    weights.push_back(at::randn(sizes).set_requires_grad(!frozen));
    step.state.parameters.emplace_back("cell." + std::to_string(weights.size()), weights.back());
  }
  const at::Tensor scale = at::ones({}).set_requires_grad(true);
  step.state.parameters.emplace_back("scale", scale);
  const at::Tensor x = at::randn({6, 2, 4}), zero = at::zeros({1, 2, 5});
  step.run = [=] {
    const auto [y, h, c] = at::lstm(x, {zero, zero}, weights, true, 1, 0.0, true, false, false);
    at::Tensor loss = (y.square().mean() + c.mean()) * scale;
    loss.backward();
    return loss;
  };
  return step;
}

TEST(Workspace, LstmKeepsItWhileAutogradIsOn) {
  expect_back_bit_for_bit(lstm(false));
}
TEST(Workspace, LstmThatIsNotTrainedKeepsItToo) {
  expect_back_bit_for_bit(lstm(true));
}

TEST(Workspace, CtcOfTargetsOfDifferentLengths) {
  at::manual_seed(4);
  Step step;
  const at::Tensor weight = at::randn({3, 6}).set_requires_grad(true);
  step.state.parameters.emplace_back("weight", weight);
  const at::Tensor x = at::randn({12, 3, 3}), targets = at::randint(1, 6, {3, 5}, at::kLong);
  step.run = [=] {
    const at::Tensor scores = at::log_softmax(at::matmul(x, weight), -1);
    at::Tensor loss = at::ctc_loss(scores, targets, {12, 12, 12}, {5, 1, 3}, 0, at::Reduction::Mean, false);
    loss.backward();
    return loss;
  };
  const Recording recording = record(step);
  EXPECT_TRUE(std::isfinite(recording.loss.item<float>()));
  weight.mutable_grad().reset();
  expect_back_bit_for_bit(step);
}

}  // namespace
}  // namespace nanquest::testing
