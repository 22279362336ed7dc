// BAD_DATA: its sample, its variants, and what looks like it and is not.
#include "tests/replay/diagnose/sample.h"

namespace nanquest {
namespace {

TEST(BadData, ItsSampleIsExplainedAndTheFixIsVerified) {
  testing::expect_sample("bad_data", {.cause = Label::bad_data,
                                      .phase = Phase::input,
                                      .op = "aten::mm",
                                      .module = "fc1",
                                      .origin = Origin::input,
                                      .precision = PrecisionVerdict::not_a_precision_matter,
                                      .poison = {4}});
}

}  // namespace
}  // namespace nanquest
