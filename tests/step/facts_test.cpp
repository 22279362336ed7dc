// Sentences about a step: every fact has one, and the line consists of them.
#include "probe/step/facts.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "probe/step/gate.h"

namespace nanquest {
namespace {

TEST(Facts, every_one_has_a_sentence) {
  for (int kind = Fact::text; kind <= Fact::off; ++kind) {
    const std::string line =
        text_of({{.kind = static_cast<Fact::Kind>(kind), .name = "it", .more = "so", .number = 2}});
    EXPECT_FALSE(line.empty()) << kind;
    EXPECT_EQ(line.find_first_of("{}"), std::string::npos) << line;
  }
}

TEST(Facts, make_one_line) {
  EXPECT_EQ(text_of({}), "");
  EXPECT_EQ(text_of({{.kind = Fact::buffer_spoiled, .name = "buffer norm.mean", .step = 17}, {Fact::no_culprit}}),
            "step 17: buffer norm.mean became NaN or Inf; no op, input or state was found that explains it");
  Facts facts;
  add_text(facts, "");
  EXPECT_TRUE(facts.empty());
  add_text(facts, "a {name} of somebody else");
  EXPECT_EQ(text_of(facts), "a {name} of somebody else");
}

TEST(Facts, say_what_is_bad) {
  const double nan = std::nan(""), infinite = std::numeric_limits<double>::infinity();
  EXPECT_EQ(text_of({what_is_bad({.loss = nan, .non_finite = 385}, false)}),
            "the loss is NaN, 385 gradient elements are NaN or Inf");
  EXPECT_EQ(text_of({what_is_bad({.loss = infinite}, false)}), "the loss is infinite");
  EXPECT_EQ(text_of({what_is_bad({.non_finite = 4}, true)}), "4 gradient elements are NaN or Inf");
  EXPECT_EQ(text_of({what_is_bad({}, true)}),
            "the norm that the gradients were clipped by was not finite, although they were");
  EXPECT_EQ(text_of({what_is_bad({}, false)}), "the norm of the gradients overflows");
}

TEST(Facts, count_what_carries_on) {
  const auto line = [](std::int64_t more) {
    return text_of(
        {{.kind = Fact::carried_on, .name = "parameter w", .step = 9, .number = more, .since = 4}});
  };
  const std::string rest =
      " still NaN or Inf from step 4; this and further steps that only carry that on are counted, not "
      "written";
  EXPECT_EQ(line(0), "step 9: parameter w is" + rest);
  EXPECT_EQ(line(1), "step 9: parameter w and 1 other tensor are" + rest);
  EXPECT_EQ(line(3), "step 9: parameter w and 3 other weights, buffers and moments are" + rest);
  EXPECT_EQ(line(-1), "step 9: parameter w is" + rest) << "what arrives has no tensor";
}

}  // namespace
}  // namespace nanquest
