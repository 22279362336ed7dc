// Checks every operator of LibTorch of which op_facts says that it only moves numbers, or makes new ones: it
// is run, and what it gives is compared with what it was given.
#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <map>
#include <set>
#include <string>

#include "probe/trace/op_numbers.h"

namespace nanquest {
namespace {

using Calls = std::map<std::string, std::function<at::Tensor(const at::Tensor&)>>;

/// By plain name: what the operator makes of a matrix of 4 by 4.
Calls moving() {
  const at::Tensor places = at::tensor({2, 0}, at::kLong);
  return {
      {"_to_copy", [](const at::Tensor& t) { return at::_to_copy(t, at::kDouble); }},
      {"_unsafe_view",
       [](const at::Tensor& t) {
         return at::_unsafe_view(t, {2, 8});
       }},
      {"alias", [](const at::Tensor& t) { return at::alias(t); }},
      {"cat",
       [](const at::Tensor& t) {
         return at::cat({t, t});
       }},
      {"clone", [](const at::Tensor& t) { return at::clone(t); }},
      {"contiguous", [](const at::Tensor& t) { return t.t().contiguous(); }},
      {"copy",
       [](const at::Tensor& t) {
         return at::zeros({4, 4}).copy_(t);
       }},
      {"detach", [](const at::Tensor& t) { return at::detach(t); }},
      {"expand",
       [](const at::Tensor& t) {
         return t.expand({2, 4, 4});
       }},
      {"flip", [](const at::Tensor& t) { return at::flip(t, {0}); }},
      {"gather",
       [=](const at::Tensor& t) {
         return at::gather(t, 1, places.view({2, 1}));
       }},
      {"index", [=](const at::Tensor& t) { return at::index(t, {places}); }},
      {"index_select", [=](const at::Tensor& t) { return at::index_select(t, 0, places); }},
      {"lift_fresh", [](const at::Tensor& t) { return at::lift_fresh(t); }},
      {"permute",
       [](const at::Tensor& t) {
         return at::permute(t, {1, 0});
       }},
      {"repeat",
       [](const at::Tensor& t) {
         return t.repeat({2, 1});
       }},
      {"reshape", [](const at::Tensor& t) { return at::reshape(t, {16}); }},
      {"roll", [](const at::Tensor& t) { return at::roll(t, {1}, {0}); }},
      {"select", [](const at::Tensor& t) { return at::select(t, 0, 1); }},
      {"slice", [](const at::Tensor& t) { return at::slice(t, 0, 1, 3); }},
      {"squeeze",
       [](const at::Tensor& t) {
         return at::squeeze(t.view({1, 16}));
       }},
      {"stack",
       [](const at::Tensor& t) {
         return at::stack({t, t});
       }},
      {"t", [](const at::Tensor& t) { return at::t(t); }},
      {"to", [](const at::Tensor& t) { return t.to(at::kDouble); }},
      {"transpose", [](const at::Tensor& t) { return at::transpose(t, 0, 1); }},
      {"unsqueeze", [](const at::Tensor& t) { return at::unsqueeze(t, 0); }},
      {"view", [](const at::Tensor& t) { return t.view({16}); }},
  };
}

TEST(OpFacts, WhatMovesElementsGivesNumbersThatItWasGiven) {
  const Calls known = moving();
  const at::Tensor given = at::randn({4, 4});
  for (const auto& [name, call] : known) {
    EXPECT_TRUE(moves_elements("aten::" + name)) << name;
    const at::Tensor made = call(given).to(at::kDouble).flatten();
    EXPECT_TRUE(at::isin(made, given.to(at::kDouble)).all().item<bool>()) << name;
  }
  // … and every operator in that list was run.
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames())
    EXPECT_TRUE(!moves_elements(name.name) || known.count(std::string(plain_name(name.name)))) << name.name;
  for (const char* name : {"aten::add", "aten::mean", "aten::relu_", "aten::masked_fill", "mine::clone"})
    EXPECT_FALSE(moves_elements(name)) << name;
}

TEST(OpFacts, WhatMakesNumbersComputesNothing) {
  const at::Tensor bad = at::full({4, 4}, std::numeric_limits<double>::quiet_NaN(), at::kFloat);
  const auto copy = [&] { return bad.clone(); };
  const std::map<std::string, at::Tensor> made = {{"aten::zeros_like", at::zeros_like(bad)},
                                                  {"aten::ones_like", at::ones_like(bad)},
                                                  {"aten::full_like", at::full_like(bad, 2)},
                                                  {"aten::rand_like", at::rand_like(bad)},
                                                  {"aten::randn_like", at::randn_like(bad)},
                                                  {"aten::fill_", copy().fill_(3)},
                                                  {"aten::zero_", copy().zero_()},
                                                  {"aten::uniform_", copy().uniform_()},
                                                  {"aten::normal_", copy().normal_()},
                                                  {"aten::random_", copy().random_(9)},
                                                  {"aten::bernoulli_", copy().bernoulli_()}};
  for (const auto& [name, tensor] : made) {
    EXPECT_TRUE(makes_numbers(name)) << name;
    EXPECT_TRUE(at::isfinite(tensor).all().item<bool>()) << name;
  }
  for (const char* name : {"aten::empty", "aten::resize_", "aten::arange", "aten::randperm"})
    EXPECT_TRUE(makes_numbers(name)) << name;
  for (const char* name : {"aten::mul_", "aten::clone", "aten::exp"})
    EXPECT_FALSE(makes_numbers(name)) << name;
}

}  // namespace
}  // namespace nanquest
