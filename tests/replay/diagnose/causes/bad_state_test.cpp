// BAD_STATE: its sample, its variants, and what looks like it and is not.
#include "tests/replay/diagnose/sample.h"

namespace nanquest {
namespace {

using testing::Incident;
using testing::kNaN;
using testing::leaf;

TEST(BadState, ItsSampleIsExplainedAndTheFixIsVerified) {
  testing::expect_sample("bad_state", {.cause = Label::bad_state,
                                       .phase = Phase::input,
                                       .op = "aten::add",
                                       .module = "norm",
                                       .origin = Origin::buffer,
                                       .precision = PrecisionVerdict::not_a_precision_matter});
}

TEST(BadState, ParameterIsNamed) {
  at::Tensor values = at::ones({3, 3});
  values[1][1] = kNaN;
  const at::Tensor w = leaf(values), x = at::ones({2, 3});
  StepState state;
  state.parameters = {{"fc.weight", w}};
  state.batch = {{"x", x}};
  const Verdict v = Incident(state, [&] {
                      const at::Tensor loss = at::mm(x, w).sum();
                      loss.backward();
                      return loss;
                    }).verdict();
  EXPECT_EQ(v.cause, Label::bad_state);
  EXPECT_EQ(v.origin, Origin::parameter);
  EXPECT_EQ(v.phase, Phase::input);
  EXPECT_EQ(v.culprit.tensor, "fc.weight");
  EXPECT_EQ(v.precision.verdict, PrecisionVerdict::not_a_precision_matter);
}

}  // namespace
}  // namespace nanquest
