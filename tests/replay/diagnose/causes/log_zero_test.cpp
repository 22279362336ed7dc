// LOG_ZERO: its sample, its variants, and what looks like it and is not.
#include "tests/replay/diagnose/sample.h"

namespace nanquest {
namespace {

using testing::expect_unknown;
using testing::Incident;
using testing::leaf;

TEST(LogZero, ItsSampleIsExplainedAndTheFixIsVerified) {
  testing::expect_sample("log_zero", {.cause = Label::log_zero,
                                      .phase = Phase::forward,
                                      .op = "aten::log",
                                      .module = "loss",
                                      .precision = PrecisionVerdict::curable,
                                      .poison = {4}});
}

TEST(LogZero, FollowsZerosToTheOpThatMadeThem) {
  const at::Tensor w = leaf(at::tensor({200.f, 0.f}));
  const Finding f = Incident({}, [&] {
                      const at::Tensor loss = -at::log(at::softmax(w, 0)).sum();
                      loss.backward();
                      return loss;
                    }).finding();
  EXPECT_EQ(f.label, Label::log_zero);
  EXPECT_NE(f.explanation.find("aten::_softmax"), std::string::npos) << f.explanation;
}

TEST(LogZero, Log1pAtMinusOne) {
  const at::Tensor w = leaf(at::tensor({-1.f, 0.5f}));
  const Verdict v = Incident({}, [&] {
                      const at::Tensor loss = at::log1p(w).sum();
                      loss.backward();
                      return loss;
                    }).verdict();
  EXPECT_EQ(v.cause, Label::log_zero);
  EXPECT_EQ(v.precision.verdict, PrecisionVerdict::structural);
}

TEST(LogZero, LogOfNegativeIsNotLogZero) {
  const at::Tensor w = leaf(at::tensor({0.f, -0.5f, 0.5f}));
  expect_unknown(Incident({},
                          [&] {
                            at::Tensor loss = at::log(w).mean();
                            loss.backward();
                            return loss;
                          }),
                 "DOMAIN");
}

}  // namespace
}  // namespace nanquest
