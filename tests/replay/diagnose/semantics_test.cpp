// The table of op semantics against PyTorch's own fp64 kernels: on a grid of values the table says finite
// where PyTorch is finite, NaN where it is NaN, and infinite where it is infinite.
#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>

#include "replay/case/semantics.h"
#include "replay/case/values.h"

namespace nanquest {
namespace {

using Args = std::vector<at::Tensor>;
using Kernel = std::function<at::Tensor(const Args&)>;

/// PyTorch's function for each entry of the table.
const std::map<std::string, Kernel>& kernels() {
  static const std::map<std::string, Kernel> all = {
      {"acos", [](const Args& x) { return at::acos(x[0]); }},
      {"acosh", [](const Args& x) { return at::acosh(x[0]); }},
      {"addcdiv", [](const Args& x) { return at::addcdiv(x[0], x[1], x[2]); }},
      {"asin", [](const Args& x) { return at::asin(x[0]); }},
      {"atanh", [](const Args& x) { return at::atanh(x[0]); }},
      {"cosh", [](const Args& x) { return at::cosh(x[0]); }},
      {"digamma", [](const Args& x) { return at::digamma(x[0]); }},
      {"div", [](const Args& x) { return at::div(x[0], x[1]); }},
      {"divide", [](const Args& x) { return at::divide(x[0], x[1]); }},
      {"erfinv", [](const Args& x) { return at::erfinv(x[0]); }},
      {"exp", [](const Args& x) { return at::exp(x[0]); }},
      {"exp2", [](const Args& x) { return at::exp2(x[0]); }},
      {"expm1", [](const Args& x) { return at::expm1(x[0]); }},
      {"floor_divide", [](const Args& x) { return at::floor_divide(x[0], x[1]); }},
      {"fmod", [](const Args& x) { return at::fmod(x[0], x[1]); }},
      {"i0", [](const Args& x) { return at::i0(x[0]); }},
      {"lgamma", [](const Args& x) { return at::lgamma(x[0]); }},
      {"log", [](const Args& x) { return at::log(x[0]); }},
      {"log10", [](const Args& x) { return at::log10(x[0]); }},
      {"log1p", [](const Args& x) { return at::log1p(x[0]); }},
      {"log2", [](const Args& x) { return at::log2(x[0]); }},
      {"logit", [](const Args& x) { return at::logit(x[0]); }},
      {"mul", [](const Args& x) { return at::mul(x[0], x[1]); }},
      {"pow", [](const Args& x) { return at::pow(x[0], x[1]); }},
      {"reciprocal", [](const Args& x) { return at::reciprocal(x[0]); }},
      {"remainder", [](const Args& x) { return at::remainder(x[0], x[1]); }},
      {"rsqrt", [](const Args& x) { return at::rsqrt(x[0]); }},
      {"sinh", [](const Args& x) { return at::sinh(x[0]); }},
      {"special_i0", [](const Args& x) { return at::special_i0(x[0]); }},
      {"special_i1", [](const Args& x) { return at::special_i1(x[0]); }},
      {"special_modified_bessel_i0", [](const Args& x) { return at::special_modified_bessel_i0(x[0]); }},
      {"special_modified_bessel_i1", [](const Args& x) { return at::special_modified_bessel_i1(x[0]); }},
      {"special_ndtri", [](const Args& x) { return at::special_ndtri(x[0]); }},
      {"special_xlog1py", [](const Args& x) { return at::special_xlog1py(x[0], x[1]); }},
      {"sqrt", [](const Args& x) { return at::sqrt(x[0]); }},
      {"true_divide", [](const Args& x) { return at::true_divide(x[0], x[1]); }},
      {"xlogy", [](const Args& x) { return at::xlogy(x[0], x[1]); }},
  };
  return all;
}

/// Values where functions turn: ends of domains, poles, whole and broken numbers, near and far.
at::Tensor grid(bool far) {
  std::vector<double> values = {0, 1e-3, 0.25, 0.5, 1 - 1e-9, 1,    1 + 1e-9, 1.5,
                                2, 3,    4.5,  7,   10,       88.8, 100,      300};
  for (const double size :
       {1e-300, 1e-160, 1e-30, 700.0, 709.7, 709.9, 711.0, 1023.0, 1025.0, 1e4, 1e30, 1e160, 1e300})
    if (far) values.push_back(size);
  const std::size_t n = values.size();
  for (std::size_t i = 0; i < n; ++i) values.push_back(-values[i]);
  return at::tensor(values, at::kDouble);
}

/// Every combination of values, one tensor an operand.
Args combinations(const OpSemantics& s) {
  const at::Tensor values = grid(s.log2_size != nullptr || s.operands.size() == 1);
  const std::size_t n = s.op == "logit" ? 1 : s.operands.size();
  Args args;
  for (std::size_t i = 0; i < n; ++i) {
    std::vector<std::int64_t> shape(n, 1), full(n, values.numel());
    shape[i] = values.numel();
    args.push_back(values.view(shape).expand(full).contiguous());
  }
  return args;
}

class Semantics : public ::testing::TestWithParam<std::string> {};

TEST_P(Semantics, AreThoseOfPyTorch) {
  const OpSemantics& s = *semantics_of(GetParam());
  ASSERT_TRUE(kernels().count(GetParam())) << "the table has an op that this test doesn't know";
  const Args args = combinations(s);
  Elements e{&s, args, kernels().at(GetParam())(args), {}};
  if (s.op == "logit") e.operands.push_back({});
  const at::Tensor nan = at::isnan(e.output), infinite = at::isinf(e.output);
  const at::Tensor expected_nan = e.outside();
  const at::Tensor pole = at::logical_and(e.at_pole(), at::logical_not(expected_nan));
  // A NaN outside the domain or, as 0 / 0, at a pole; nowhere else.
  EXPECT_FALSE(at::logical_and(nan, at::logical_not(at::logical_or(expected_nan, pole))).any().item<bool>());
  EXPECT_FALSE(at::logical_and(expected_nan, at::logical_not(nan)).any().item<bool>());
  // An infinity at a pole, or where the size is beyond fp64; nowhere else.
  const at::Tensor beyond = e.beyond();
  EXPECT_FALSE(at::logical_and(infinite, at::logical_not(at::logical_or(pole, beyond))).any().item<bool>());
  const at::Tensor bad = at::logical_or(nan, infinite);
  EXPECT_FALSE(at::logical_and(pole, at::logical_not(bad)).any().item<bool>());
  const at::Tensor far_beyond = s.log2_size ? s.log2_size(e.operands) > 1025 : at::zeros_like(bad);
  EXPECT_FALSE(at::logical_and(far_beyond, at::logical_not(bad)).any().item<bool>());
}

std::vector<std::string> names() {
  std::vector<std::string> found;
  for (const OpSemantics& s : all_semantics()) found.emplace_back(s.op);
  return found;
}

INSTANTIATE_TEST_SUITE_P(Table, Semantics, ::testing::ValuesIn(names()),
                         [](const auto& one) { return one.param; });

TEST(SemanticsTable, NamesOperandsThatTheSchemasHave) {
  for (const OpSemantics& s : all_semantics()) {
    bool found = false;
    for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
      if (name.name != "aten::" + std::string(s.op)) continue;
      const auto handle = c10::Dispatcher::singleton().findOp(name);
      if (!handle) continue;
      bool all = true;
      for (const std::string_view operand : s.operands) {
        bool has = false;
        for (const c10::Argument& a : handle->schema().arguments()) has = has || a.name() == operand;
        all = all && has;
      }
      found = found || all;
    }
    EXPECT_TRUE(found) << s.op;
  }
}

TEST(SemanticsTable, SafeIntervalsLieInsideTheDomain) {
  for (const at::ScalarType type : {at::kHalf, at::kBFloat16, at::kFloat, at::kDouble})
    for (const OpSemantics& s : all_semantics()) {
      if (!s.safe || s.operands.size() > 1) continue;
      const auto [low, high] = safe_interval(s, at::zeros({}, type));
      std::vector<double> ends;
      if (!std::isnan(low)) ends.push_back(low);
      if (!std::isnan(high)) ends.push_back(high);
      Elements e{&s, {at::tensor(ends, at::kDouble).to(type).to(at::kDouble)}, at::zeros({}, type), {}};
      EXPECT_FALSE(at::logical_or(e.outside(), at::logical_or(e.at_pole(), e.beyond())).any().item<bool>())
          << s.op << " in " << at::toString(type);
    }
}

TEST(SemanticsTable, DerivativesAtTheBoundsAreThoseOfWiderNumbers) {
  using Unary = at::Tensor (*)(const at::Tensor&);
  const std::pair<const char*, Unary> functions[] = {{"acos", at::acos},   {"asin", at::asin},
                                                     {"acosh", at::acosh}, {"atanh", at::atanh},
                                                     {"log1p", at::log1p}, {"erfinv", at::erfinv}};
  for (const auto& [name, function] : functions) {
    const OpSemantics* semantics = semantics_of(name);
    ASSERT_TRUE(semantics && semantics->safe) << name;
    const auto [low, high] = safe_interval(*semantics, at::zeros({}, at::kFloat));
    for (const double bound : {low, high}) {
      if (std::isnan(bound)) continue;
      const auto derivative = [&](at::ScalarType type) {
        const at::Tensor x = at::full({}, bound, type).requires_grad_();
        function(x).backward();
        return x.grad().to(at::kDouble).item<double>();
      };
      const double exact = derivative(at::kDouble);
      EXPECT_NEAR(derivative(at::kFloat), exact, 2e-4 * std::abs(exact)) << name << " at " << bound;
    }
  }
}

}  // namespace
}  // namespace nanquest
