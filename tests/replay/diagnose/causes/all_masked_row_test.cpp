// ALL_MASKED_ROW: its sample, its variants, and what looks like it and is not.
#include "tests/replay/diagnose/sample.h"

namespace nanquest {
namespace {

using testing::expect_unknown;
using testing::Incident;
using testing::kInf;
using testing::leaf;

TEST(AllMaskedRow, ItsSampleIsExplainedAndTheFixIsVerified) {
  testing::expect_sample("all_masked_row", {.cause = Label::all_masked_row,
                                            .phase = Phase::forward,
                                            .op = "aten::_softmax",
                                            .module = "attention",
                                            .precision = PrecisionVerdict::structural,
                                            .poison = {2}});
}

TEST(AllMaskedRow, AnInfinityFromOutsideIsBadDataAndNotAllMaskedRow) {
  const at::Tensor w = leaf(at::ones({2, 3}));
  at::Tensor shift = at::zeros({2, 3});
  shift[0][1] = kInf;
  const Finding f = Incident({}, [&] {
                      at::Tensor loss = at::softmax(w + shift, 1).pow(2).sum();
                      loss.backward();
                      return loss;
                    }).finding();
  EXPECT_EQ(f.label, Label::bad_data) << f.explanation;
}

}  // namespace
}  // namespace nanquest
