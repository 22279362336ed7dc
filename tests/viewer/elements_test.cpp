// Single elements of stored tensors, the way from one bad one to the next, and what if they were of another
// format.
#include "viewer/model/elements.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <filesystem>
#include <limits>

#include "probe/snapshot/writer.h"
#include "tests/viewer/story.h"
#include "viewer/panels/registry.h"

namespace nanquest::viewer {
namespace {

/// 64 x 64 numbers of fp16: NaN at 70, 71 and 1000, Inf at 200 and 2100, -Inf at 3000.
constexpr const char* kHalf = "trace/slot_data/000099";

class Elements : public testing::Story {
 protected:
  /// A snapshot with this tensor alone, which is selected.
  Session with(DType dtype, const std::vector<std::int64_t>& shape, const void* data) {
    std::filesystem::create_directories(dir());
    SnapshotDoc doc = testing::fixture_doc();
    for (Slot& slot : doc.slots) slot.data.clear();
    Result<SnapshotWriter> writer = SnapshotWriter::create(dir() + "/a.h5");
    EXPECT_TRUE(writer && writer->write_tensor("parameters/w", {dtype, shape, data}) &&
                writer->write_doc(doc) && writer->commit());
    Session session = open(dir() + "/a.h5");
    session.select_tensor("parameters/w");
    return session;
  }
  Session half() {
    testing::write_run(dir());
    Session session = open(dir());
    session.select_tensor(kHalf);
    return session;
  }
};

TEST_F(Elements, ShowTheirDigitsBytesAndBits) {
  struct Case {
    DType dtype;
    std::uint64_t bytes;
    const char *exact, *hex, *bits;
  };
  // Patterns and values by hand.
  for (const Case& c : {
           Case{DType::float16, 0x7e00, "nan", "0x7e00", "0 11111 1000000000"},
           {DType::float16, 0xfc00, "-inf", "0xfc00", "1 11111 0000000000"},
           {DType::float16, 0x0001, "5.960464477539063e-08", "0x0001", "0 00000 0000000001"},
           {DType::bfloat16, 0x3f80, "1", "0x3f80", "0 01111111 0000000"},
           {DType::float32, 0xbdcccccd, "-0.10000000149011612", "0xbdcccccd",
            "1 01111011 10011001100110011001101"},
           {DType::float64, 0x3ff0000000000001, "1.0000000000000002", "0x3ff0000000000001",
            "0 01111111111 0000000000000000000000000000000000000000000000000001"},
           {DType::float8_e4m3fn, 0x7e, "448", "0x7e", "0 1111 110"},
           {DType::float8_e4m3fn, 0xff, "nan", "0xff", "1 1111 111"},
           {DType::float8_e5m2, 0x7c, "inf", "0x7c", "0 11111 00"},
           {DType::int8, 0xfe, "-2", "0xfe", "11111110"},
           {DType::uint16, 0xfffe, "65534", "0xfffe", "11111111 11111110"},
           {DType::int64, 0x8000000000000000, "-9223372036854775808", "0x8000000000000000",
            "10000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000"},
           {DType::boolean, 1, "1", "0x01", "00000001"},
       }) {
    SCOPED_TRACE(std::string(dtype_name(c.dtype)) + " " + c.hex);
    Session session = with(c.dtype, {1}, &c.bytes);
    const ElementPage* page = session.elements();
    ASSERT_NE(page, nullptr) << session.tensor_error();
    ASSERT_EQ(page->elements.size(), 1U);
    const Element& e = page->elements.front();
    EXPECT_EQ(e.exact, c.exact);
    EXPECT_EQ(e.hex, c.hex);
    EXPECT_EQ(e.bits, c.bits);
    EXPECT_EQ(e.finite, std::string(c.exact).find_first_of("n") == std::string::npos)
        << "nan and inf have an n";
    EXPECT_EQ(session.element_text(), "parameters/w[0] = " + e.exact + "  " + e.hex + "  " + e.bits);
  }
}

TEST_F(Elements, OfComplexNumbersAreTwoParts) {
  const float values[] = {1, 2, 3, std::nanf("")};
  Session session = with(DType::complex64, {2}, values);
  const ElementPage* page = session.elements();
  ASSERT_NE(page, nullptr);
  ASSERT_EQ(page->elements.size(), 2U);
  EXPECT_EQ(page->elements[0].exact, "1, 2");
  EXPECT_EQ(page->elements[1].exact, "3, nan");
  EXPECT_TRUE(page->elements[0].finite);
  EXPECT_FALSE(page->elements[1].finite);
  EXPECT_EQ(session.shown_element(), 1U) << "the first bad one, not the first bad real";
  ASSERT_TRUE(session.select_bad(Direction::forward));
  EXPECT_EQ(session.selection().element, 1);
}

TEST_F(Elements, OneBadAfterTheOtherAndAroundTheEnd) {
  Session session = half();
  EXPECT_EQ(session.selection().element, -1);
  ASSERT_NE(session.elements(), nullptr);
  EXPECT_EQ(session.shown_element(), 70U) << "the first that is bad, as long as nobody chose one";
  std::string said;
  for (const std::int64_t want : {70, 71, 200, 1000, 2100, 3000, 70}) {
    said = *session.select_bad(Direction::forward);
    EXPECT_EQ(session.selection().element, want);
  }
  EXPECT_EQ(said, "element 70 of 4,096 [1, 6]: NaN, from the start again");
  for (const std::int64_t want : {3000, 2100, 1000, 200, 71, 70}) {
    said = *session.select_bad(Direction::backward);
    EXPECT_EQ(session.selection().element, want);
  }
  EXPECT_EQ(said, "element 70 of 4,096 [1, 6]: NaN");
  session.select_element(2500);
  EXPECT_EQ(*session.select_bad(Direction::forward), "element 3,000 of 4,096 [46, 56]: -Inf");
  session.select_element(4096);
  EXPECT_EQ(session.selection().element, 3000) << "there is none of that number";
}

/// Larger than what is read at a time, with bad ones at both ends of a piece.
TEST_F(Elements, AreFoundAcrossThePiecesThatAreRead) {
  std::vector<std::uint16_t> values((1U << 21) + 5, 0x3f80);
  for (const std::size_t at : {(1U << 20) - 1, 1U << 20, (1U << 21) + 4}) values[at] = 0x7fc0;
  Session session = with(DType::bfloat16, {static_cast<std::int64_t>(values.size())}, values.data());
  for (const Direction direction : {Direction::forward, Direction::backward}) {
    std::vector<std::int64_t> found;
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(session.select_bad(direction));
      found.push_back(session.selection().element);
    }
    const std::vector<std::int64_t> forward = {(1 << 20) - 1, 1 << 20, (1 << 21) + 4};
    // Backward continues from the last one: the two before it, then wraps around to it.
    EXPECT_EQ(found, direction == Direction::forward
                         ? forward
                         : (std::vector<std::int64_t>{1 << 20, (1 << 20) - 1, (1 << 21) + 4}));
  }
}

TEST_F(Elements, WhereNoneIsBadThatIsSaid) {
  const float values[] = {1, 2, 3};
  Session session = with(DType::float32, {3}, values);
  EXPECT_EQ(*session.select_bad(Direction::forward), "w: every element is finite");
  EXPECT_EQ(session.selection().element, -1);
  const float one[] = {1, HUGE_VALF, 3};
  Session other = with(DType::float32, {3}, one);
  EXPECT_EQ(*other.select_bad(Direction::backward), "element 1 of 3: +Inf");
  EXPECT_EQ(*other.select_bad(Direction::backward), "element 1 of 3: +Inf, the only bad one");
  other.restore({});
  EXPECT_FALSE(other.select_bad(Direction::forward));
}

TEST_F(Elements, BelongToTheirTensor) {
  Session session = half();
  session.select_element(2100);
  session.select_tensor("parameters/head.weight");
  EXPECT_EQ(session.selection().element, -1);
  session.select_tensor(kHalf);
  session.select_element(2100);
  ASSERT_TRUE(session.reload());
  EXPECT_EQ(session.selection().element, 2100);
  EXPECT_EQ(session.elements()->at(2100)->exact, "inf");
  EXPECT_EQ(session.elements()->at(70), nullptr) << "is on another page";
}

/// The figures are those of PyTorch's casts of the same 4096 numbers.
TEST_F(Elements, WhatIfTheyWereOfAnotherFormatAtAnotherScale) {
  Session session = half();
  session.select_what_if(*what_if_from("fp16:2^4"));
  const std::string text = panel_text(session, Panel::tensor);
  EXPECT_TRUE(
      says(text, "fp16 at 2^4 (16): 427 of 4,090 finite values overflow, 0 become zero, 432 subnormal; 6"))
      << text;
  EXPECT_TRUE(says(text, "In other formats, times 2^4 (16)"));
  EXPECT_TRUE(says(text, "2^-2 to 2^0")) << text;
  const std::string csv = *panel_csv(session, Panel::tensor);
  EXPECT_TRUE(says(csv, "fp16 at 2^4,overflow,427")) << csv;
  EXPECT_TRUE(says(csv, "element,70,nan,0x7e00,0 11111 1000000000"));
  for (const char* part : {"Elements 62 to 78 of 4,096", "70 >  [1, 6]", "nan  0x7e00  0 11111 1000000000"})
    EXPECT_TRUE(says(text, part)) << part << " in\n" << text;
}

TEST(WhatIfWords, SayWhatIsNotFiniteAlready) {
  const auto text = [](const std::vector<double>& values, std::uint64_t non_finite) {
    FitCounts counts;
    for (const double value : values) counts.add(value);
    return what_if_text(counts, {Format::fp16, 0}, non_finite);
  };
  EXPECT_EQ(text({1, 2, 0}, 3),
            "fp16 at scale 1: all 2 finite values that are not zero fit; 3 are not finite already");
  EXPECT_EQ(text({1, 2}, 0), "fp16 at scale 1: all 2 values that are not zero fit");
  EXPECT_EQ(text({0, 5}, 1),
            "fp16 at scale 1: the one finite value that is not zero fits; 1 is not finite already");
  EXPECT_EQ(text({5}, 0), "fp16 at scale 1: the one value that is not zero fits");
  EXPECT_EQ(
      text({1e6, 1}, 1),
      "fp16 at scale 1: 1 of 2 finite values overflows, 0 become zero, 0 subnormal; 1 is not finite already");
  EXPECT_EQ(text({}, 2), "fp16 at scale 1: no value is finite and above or below zero");
}

TEST(Planes, HoldTheirElements) {
  EXPECT_EQ(plane_holding({2, 3, 4, 5}, 39), 1);
  EXPECT_EQ(plane_holding({2, 3, 4, 5}, 40), 2);
  EXPECT_EQ(plane_holding({500}, 499), 0);
  EXPECT_EQ(plane_holding({2, 0}, 0), 0);
}

TEST_F(Elements, HaveACellInTheirPlaneAlone) {
  const std::vector<float> values(std::size_t{3} * 200 * 4);
  Session session = with(DType::float32, {3, 200, 4}, values.data());
  const TensorSlice* slice = session.tensor_slice(1);
  ASSERT_NE(slice, nullptr);
  ASSERT_EQ(slice->cell_rows, 96);
  EXPECT_EQ(slice->first, 800U);
  EXPECT_EQ(slice->cell_of(800), (std::pair<std::int64_t, std::int64_t>{0, 0}));
  EXPECT_EQ(slice->cell_of(1599), (std::pair<std::int64_t, std::int64_t>{95, 3}));
  for (const std::uint64_t outside : {0U, 799U, 1600U}) EXPECT_FALSE(slice->cell_of(outside)) << outside;
}

TEST(WhatIfWords, SayFormatAndPowerOfTwo) {
  const auto what = [](const char* text) { return *what_if_from(text); };
  EXPECT_EQ(what("fp16"), (WhatIf{Format::fp16, 0}));
  EXPECT_EQ(what("bf16:4096"), (WhatIf{Format::bf16, 12}));
  EXPECT_EQ(what("fp8_e4m3:2^-3"), (WhatIf{Format::fp8_e4m3, -3}));
  EXPECT_EQ(what("fp32:0.25"), (WhatIf{Format::fp32, -2}));
  for (const char* bad : {"fp64", "", "fp16:", "fp16:3", "fp16:2^1.5", "fp16:2^65", "fp16:-2", "fp16:0",
                          "fp16:nan", "fp16:inf", "fp16:2^", "fp16:1e300", "fp16:4x"})
    EXPECT_FALSE(what_if_from(bad)) << bad;
  EXPECT_EQ(scaled({Format::fp16, 64}, 1).scale, 64);
  EXPECT_EQ(next_format({Format::fp8_e4m3, 3}), (WhatIf{Format::fp32, 3}));
  EXPECT_EQ(next_format({Format::fp32, 3}), (WhatIf{Format::bf16, 3}));
}

}  // namespace
}  // namespace nanquest::viewer
