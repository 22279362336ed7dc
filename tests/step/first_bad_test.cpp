// Since when a name is bad, as probe/step/first_bad.h promises.
#include "probe/step/first_bad.h"

#include <gtest/gtest.h>

namespace nanquest {
namespace {

TEST(FirstBad, TheFirstStepAndItsWriterStayUntilTheNameIsFiniteAgain) {
  FirstBad first;
  int asked = 0;
  const auto writer = [&](const std::string& name) { return "op" + std::to_string(++asked) + " of " + name; };
  EXPECT_EQ(first.of("parameter w"), nullptr);
  first.note(38, {"parameter w"}, writer);
  first.note(39, {"parameter w", "buffer b"}, writer);
  ASSERT_NE(first.of("parameter w"), nullptr);
  EXPECT_EQ(first.of("parameter w")->step, 38);
  EXPECT_EQ(first.of("parameter w")->op, "op1 of parameter w");
  EXPECT_EQ(first.of("buffer b")->step, 39);
  EXPECT_EQ(asked, 2);
  first.note(50, {"buffer b"}, writer);  // the weight was loaded again
  EXPECT_EQ(first.of("parameter w"), nullptr);
  first.note(60, {"parameter w"}, writer);
  EXPECT_EQ(first.of("parameter w")->step, 60);
}

}  // namespace
}  // namespace nanquest
