#include "probe/base/check.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>

#include "probe/base/dtype.h"
#include "probe/base/result.h"
#include "probe/numerics/format.h"
#include "probe/numerics/scan.h"

namespace nanquest {
namespace {

/// What the check that `work` fails says; fails the test if it fails none.
template <class F>
std::string failure_of(F&& work) {
  try {
    work();
  } catch (const CheckFailed& failed) {
    return failed.what();
  }
  ADD_FAILURE() << "no check failed";
  return "";
}

TEST(Check, SaysWhatAndWhere) {
  int row = 7, line = 0;
  const std::string text = failure_of([&] { line = __LINE__, NANQUEST_CHECK(row < 5, "row of a table"); });
  EXPECT_EQ(text, "check failed: row < 5 (row of a table), base/check_test.cpp:" + std::to_string(line));
}

TEST(Check, WordsAreMadeOnlyForAFailure) {
  int made = 0;
  const auto words = [&] {
    ++made;
    return std::string("words");
  };
  NANQUEST_CHECK(1 + 1 == 2, words());
  EXPECT_EQ(made, 0);
  failure_of([&] { NANQUEST_CHECK(1 + 1 == 3, words()); });
  EXPECT_EQ(made, 1);
}

TEST(Check, IsOneStatementAndLooksOnce) {
  int looked = 0;
  if (looked == 0)
    NANQUEST_CHECK(++looked == 1, "first");
  else
    NANQUEST_CHECK(false, "never");
  EXPECT_EQ(looked, 1);
  // Builds with NDEBUG are the only ones that there are, and checks are in them.
#ifndef NDEBUG
  ADD_FAILURE() << "NDEBUG is part of LibTorch's ABI and must be set in every build";
#endif
}

TEST(Check, APathIsCutToItsLastTwoParts) {
  const auto at = [](std::string_view file) {
    const std::string text = failure_of([&] { check_failed("c", "w", file, 3); });
    return text.substr(text.rfind(' ') + 1);
  };
  EXPECT_EQ(at("/home/you/nanquest/probe/trace/graph.cpp"), "trace/graph.cpp:3");
  EXPECT_EQ(at("probe/trace/graph.cpp"), "trace/graph.cpp:3");
  EXPECT_EQ(at("trace/graph.cpp"), "trace/graph.cpp:3");
  EXPECT_EQ(at("graph.cpp"), "graph.cpp:3");
  EXPECT_EQ(at("/graph.cpp"), "graph.cpp:3");
}

TEST(Result, AskingAFailureForItsValueIsAFailedCheckThatTellsTheFailure) {
  Result<std::unique_ptr<int>> failed = Error{ErrorCode::io, "run: no such directory", "make it"};
  EXPECT_NE(failure_of([&] { (void)failed.value(); }).find("run: no such directory (make it)"),
            std::string::npos);
  const Result<std::string> text = Error{ErrorCode::io, "x", ""};
  failure_of([&] { (void)text->size(); });
  failure_of([&] { (void)*text; });
  failure_of([&] { (void)Result<int>(Error{}).value(); });
  Result<int> good = 3;
  EXPECT_EQ(*good, 3);
  failure_of([] { (void)Status().error(); });
}

TEST(Trusted, NumbersOfTypesAndFormats) {
  failure_of([] { (void)dtype_size(static_cast<DType>(kDTypeCount)); });
  failure_of([] { (void)dtype_name(static_cast<DType>(255)); });
  failure_of([] { (void)info(static_cast<Format>(kFormatCount)); });
  static_assert(dtype_size(DType::bfloat16) == 2);
}

TEST(Trusted, ShapesOfViews) {
  const std::int64_t sizes[] = {2, 3}, strides[] = {3, 1};
  const float x[6] = {};
  failure_of([&] { (void)scan_strided(DType::float32, x, sizes, std::span(strides, 1)); });
  failure_of([&] { (void)hash_strided(0, x, sizes, strides); });
  failure_of([&] { (void)hash_strided(1025, x, sizes, strides); });
  const std::vector<std::int64_t> many(63, 2), apart(64, 5), too_many(64, 2);
  failure_of([&] { (void)scan_strided(DType::float32, x, many, std::span(apart).first(63)); });
  failure_of([&] { (void)scan_strided(DType::float32, x, too_many, apart); });
  EXPECT_EQ(scan_strided(DType::float32, x, sizes, strides).count, 6u);
}

}  // namespace
}  // namespace nanquest
