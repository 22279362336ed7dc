#include "probe/base/wrap.h"

#include <gtest/gtest.h>

namespace nanquest {
namespace {

using Lines = std::vector<std::string>;

TEST(Wrap, FillsLinesWithWords) {
  EXPECT_EQ(wrapped("a bc def g", 4), (Lines{"a bc", "def", "g"}));
  EXPECT_EQ(wrapped("a bc def g", 5), (Lines{"a bc", "def g"}));
  EXPECT_EQ(wrapped("  a \t b\n c ", 80), (Lines{"a b c"}));
  EXPECT_EQ(wrapped("", 10), (Lines{""}));
  EXPECT_EQ(wrapped(" \n ", 10, true), (Lines{""}));
}

TEST(Wrap, AWordLongerThanALineStandsAlone) {
  EXPECT_EQ(wrapped("a very_long_word b", 5), (Lines{"a", "very_long_word", "b"}));
  EXPECT_EQ(wrapped("very_long_word", 0), (Lines{"very_long_word"}));
}

TEST(Wrap, KeepsLineBreaksWhereAsked) {
  EXPECT_EQ(wrapped("one two\nthree", 80, true), (Lines{"one two", "three"}));
  EXPECT_EQ(wrapped("one\n\ntwo\n", 80, true), (Lines{"one", "", "two"}));
  EXPECT_EQ(wrapped("one two\nthree", 5, true), (Lines{"one", "two", "three"}));
}

}  // namespace
}  // namespace nanquest
