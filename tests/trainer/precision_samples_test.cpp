// samples/precision: the programs print the expected numbers.
#include <cmath>
#include <map>

#include "tests/trainer/helpers.h"

namespace nanquest::trainer {
namespace {

using test::Folder;

/// A line's last word is a number, the words before it are its name.
std::map<std::string, double> numbers_of(const std::string& out) {
  std::map<std::string, double> numbers;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t end = line.find_last_not_of(' ', line.rfind(' '));
    if (end != std::string::npos) numbers[line.substr(0, end + 1)] = std::atof(line.c_str() + end + 1);
  }
  return numbers;
}

test::Ran run_sample(const std::string& name, const std::string& arguments, const Folder& folder) {
  return test::run(std::string(NANQUEST_TEST_SAMPLES) + "/" + name + " " + arguments, folder);
}

TEST(PrecisionSamples, GradientsUnderflowAScaleHealsItAndClippingComesAfterIt) {
  const Folder folder;
  const test::Ran r = run_sample("gradients", "", folder);
  ASSERT_EQ(r.code, 0) << r.err;
  auto n = numbers_of(r.out);
  SCOPED_TRACE(r.out);
  EXPECT_NEAR(n.at("smallest number of fp16"), std::ldexp(1, -24), 1e-12);
  EXPECT_EQ(n.at("fp32: share of zeros in the first gradient"), 0);
  EXPECT_GT(n.at("fp16: share of zeros in the first gradient"), 0.3);
  EXPECT_GT(n.at("fp16: share of zeros in the last gradient"), 0.95);
  EXPECT_LT(n.at("fp16 times 65536: share of zeros in the last gradient"), 0.01);
  // Finite, but far from what the same run learns in fp32; with a scale nearly that.
  const double fp32 = n.at("fp32: loss at the end");
  EXPECT_LT(fp32, 0.05);
  EXPECT_GT(n.at("fp16: loss at the end"), 5 * fp32);
  EXPECT_NEAR(n.at("fp16 times 65536: loss at the end"), fp32, 0.05 * fp32);
  EXPECT_EQ(n.at("fp16 times 65536: steps left out"), 0);
  // A scale that is too large costs a step for each halving, and nothing else.
  const double out = n.at("fp16 from 2^40 down: steps left out");
  EXPECT_GT(out, 2);
  EXPECT_EQ(n.at("fp16 from 2^40 down: log2 of the scale at the end"), 40 - out);
  EXPECT_LT(n.at("fp16 from 2^40 down: loss at the end"), 2 * fp32);
  // Clipped before it is divided, a gradient is 65536 times too small.
  const double norm = n.at("clipped after dividing by the scale: norm before");
  ASSERT_GT(norm, 1e-4) << "there is something to clip";
  EXPECT_NEAR(n.at("clipped before dividing by the scale: norm before"), 65536 * norm, 0.01 * 65536 * norm);
  EXPECT_NEAR(n.at("clipped after dividing by the scale: norm left"), 5e-5, 1e-7);
  EXPECT_NEAR(n.at("clipped before dividing by the scale: norm left"), 5e-5 / 65536, 5e-7 / 65536);
  EXPECT_EQ(n.at("one infinity, clipped: elements that are NaN now"), 1);
  EXPECT_GT(n.at("one infinity, clipped: share of elements that are zero now"), 0.999);
}

TEST(PrecisionSamples, ALongSequenceOverflowsLateAndTheRunGoesOn) {
  const Folder folder;
  EXPECT_EQ(run_sample("long_sequences", "", folder).code, 2);
  const test::Ran r = run_sample("long_sequences", "'" + (folder / "run") + "'", folder);
  ASSERT_EQ(r.code, 0) << r.err;
  auto n = numbers_of(r.out);
  SCOPED_TRACE(r.out);
  EXPECT_LE(n.at("alone: longest document before it"), 256);
  EXPECT_LT(n.at("alone: largest sum before it"), 65504 / 8) << "nothing announces it";
  EXPECT_GT(n.at("alone: tokens that fp16 has room for, at that rate"), 256 * 4);
  EXPECT_LT(n.at("alone: tokens that fp16 has room for, at that rate"), 24000);
  EXPECT_EQ(n.at("alone: first batch whose loss is no number"), 220);
  EXPECT_TRUE(std::isnan(n.at("alone: loss at the end")));
  EXPECT_LT(n.at("alone: share of weights that are numbers"), 0.1);
  EXPECT_EQ(n.at("guarded: incidents"), 1);
  EXPECT_EQ(n.at("guarded: updates"), 300);
  EXPECT_EQ(n.at("guarded: batches left out"), 0);
  EXPECT_GT(n.at("guarded: the sum that was too large"), 65504);
  EXPECT_LT(n.at("guarded: loss at the end"), 0.4);
  EXPECT_EQ(n.at("guarded: share of weights that are numbers"), 1);
  EXPECT_NE(r.out.find("aten::bmm"), std::string::npos) << "the product is named";
  EXPECT_NE(r.out.find("pool"), std::string::npos) << "and where it is";
  EXPECT_TRUE(std::filesystem::exists(folder / "run/incidents/step-00000220.r0.h5"));
}

}  // namespace
}  // namespace nanquest::trainer
