// Tables for terminals, and numbers that are easily read wrongly.
#include <gtest/gtest.h>

#include "viewer/model/text_table.h"

namespace nanquest::viewer {
namespace {

TEST(TextTable, ColumnsAreAsWideAsTheirCells) {
  EXPECT_EQ(text_table({{"layer"}, {"last", true}}, {{"a", "1.5"}, {"head.weight", "-0.25"}}, "  "),
            "  layer         last\n"
            "  a              1.5\n"
            "  head.weight  -0.25\n");
}

TEST(TextTable, NoCellTouchesTheNext) {
  const std::string wide(80, 'x');
  EXPECT_EQ(text_table({{"a"}, {"b"}}, {{wide, "1"}, {"y", "2"}}), "a  b\n" + wide + "  1\n" + "y  2\n");
}

TEST(TextTable, CountsCharactersAndEndsLinesCleanly) {
  EXPECT_EQ(text_table({{"name"}, {"x"}}, {{"größe", "1"}, {"größen", ""}}),
            "name    x\n"
            "größe   1\n"
            "größen\n");
}

TEST(TextTable, RowsMayBeShort) {
  EXPECT_EQ(text_table({{"a"}, {"b"}}, {{"1"}}), "a  b\n1\n");
}

}  // namespace
}  // namespace nanquest::viewer
