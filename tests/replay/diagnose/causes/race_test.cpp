// RACE: its sample, its variants, and what looks like it and is not.
#include <vector>

#include "tests/replay/diagnose/sample.h"

namespace nanquest {
namespace {

using testing::Incident;
using testing::kNaN;
using testing::leaf;

TEST(Race, ItsSampleIsExplainedAndTheFixIsVerified) {
  const Verdict v = testing::sample_verdict("race", 1);
  EXPECT_TRUE(v.reproduction.bit_exact);
  EXPECT_EQ(v.cause, Label::race) << v.explanation;
  ASSERT_TRUE(v.fix.has_value()) << v.explanation;
  EXPECT_TRUE(v.fix->verified && v.fix->placebo_failed && v.fix->minimal);
  EXPECT_FALSE(v.fix->advice.empty());
}

/// A batch in foreign memory, which `step` may change between its ops.
struct Shared {
  std::vector<float> memory = std::vector<float>(8, 2.f);
  at::Tensor x = at::from_blob(memory.data(), {8});
};

Finding finding_of(const Shared& shared, const std::string& name,
                   const std::function<at::Tensor(const at::Tensor& w)>& forward,
                   const std::function<void()>& between) {
  const at::Tensor w = leaf(at::full({8}, 3.f)), other = leaf(at::ones({8}));
  const at::Tensor y = at::ones({8});
  StepState state;
  state.parameters = {{"w", w}, {"other", other}};
  state.batch = {{"y", y}};
  if (!name.empty()) state.batch.emplace_back(name, shared.x);
  const Incident incident(state, [&] {
    const at::Tensor loss = forward(w) + (other * y).sum();
    between();
    loss.backward();
    return loss;
  });
  EXPECT_FALSE(incident.doc().culprit.value.empty());
  return incident.finding();
}

TEST(Race, ZerosBetweenForwardAndBackward) {
  for (const float now : {0.f}) {
    Shared shared;
    const Finding f = finding_of(
        shared, "x", [&](const at::Tensor& w) { return (w / shared.x).sum(); },
        [&] { shared.memory[3] = now; });
    EXPECT_EQ(f.label, Label::race) << f.explanation;
  }
}

TEST(Race, MemoryWithoutAName) {
  Shared shared;
  const Finding f = finding_of(
      shared, "", [&](const at::Tensor& w) { return (w * shared.x).sum(); },
      [&] { shared.memory[3] = static_cast<float>(kNaN); });
  EXPECT_EQ(f.label, Label::race) << f.explanation;
}

TEST(Race, BetweenTwoOpsOfOneForwardPass) {
  Shared shared;
  const Finding f = finding_of(
      shared, "x",
      [&](const at::Tensor& w) {
        const at::Tensor top = at::amax(shared.x);
        shared.memory[2] = static_cast<float>(kNaN);
        return (w * (shared.x - top)).sum();
      },
      [] {});
  EXPECT_EQ(f.label, Label::race) << f.explanation;
}

TEST(Race, ABatchThatWasBadFromTheStartIsNot) {
  Shared shared;
  shared.memory[1] = static_cast<float>(kNaN);
  const Finding f = finding_of(
      shared, "x", [&](const at::Tensor& w) { return (w * shared.x).sum(); }, [] {});
  EXPECT_EQ(f.label, Label::bad_data) << f.explanation;
}

TEST(Race, AChangeThatIsNotToBlameIsNot) {
  Shared shared;
  const Finding f = finding_of(
      shared, "x", [&](const at::Tensor& w) { return at::log(w * 0).sum() + (w * shared.x).sum(); },
      [&] { shared.memory[3] = 1; });
  EXPECT_NE(f.label, Label::race) << f.explanation;
}

TEST(Race, ABufferFilledAgainForTheNextMicroBatchIsNot) {
  Shared shared;
  const at::Tensor w = leaf(at::full({8}, 3.f)), other = leaf(at::ones({8}));
  StepState state;
  state.parameters = {{"w", w}, {"other", other}};
  state.batch = {{"x", shared.x}};
  const Incident incident(state, [&] {
    (w * shared.x).sum().backward();
    shared.memory[3] = static_cast<float>(kNaN);
    const at::Tensor loss = (w * shared.x).sum() + other.sum();
    loss.backward();
    return loss;
  });
  ASSERT_FALSE(incident.doc().culprit.value.empty());
  EXPECT_NE(incident.finding().label, Label::race);
}

}  // namespace
}  // namespace nanquest
