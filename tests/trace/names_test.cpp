#include "probe/trace/names.h"

#include <gtest/gtest.h>

namespace nanquest {
namespace {

TEST(Names, OfValues) {
  EXPECT_EQ(value_name({1, 0, 0}), "nan");
  EXPECT_EQ(value_name({0, 2, 0}), "+inf");
  EXPECT_EQ(value_name({0, 0, 3}), "-inf");
  EXPECT_EQ(value_name({1, 0, 3}), "mixed");
  EXPECT_EQ(value_name({}), "silent");
  EXPECT_EQ(value_words("+inf"), "+Inf");
  EXPECT_EQ(value_words("mixed"), "non-finite values");
  EXPECT_EQ(value_words("mixed", /*one=*/true), "non-finite value");
  EXPECT_EQ(value_words("silent"), "silently destroyed values");
}

TEST(Names, OfPhasesOriginsAndFormats) {
  EXPECT_EQ(phase_name(Phase::optimizer), "optimizer");
  EXPECT_EQ(origin_name(SlotOrigin::optimizer_state), "optimizer_state");
  EXPECT_EQ(origin_name(SlotOrigin::external), "input");
  EXPECT_EQ(origin_name(SlotOrigin::gradient), "gradient");
  EXPECT_EQ(origin_name(SlotOrigin::produced), "op");
  EXPECT_EQ(dtype_short(DType::bfloat16), "bf16");
  EXPECT_EQ(dtype_short(DType::boolean), "bool");
}

}  // namespace
}  // namespace nanquest
