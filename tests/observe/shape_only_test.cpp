// Checks every operator of LibTorch of which op_facts says that it uses only an argument's shape: the
// argument's values must not change the result.
#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <map>
#include <set>
#include <string>

#include "probe/trace/op_facts.h"

namespace nanquest {
namespace {

/// The tensor's first value in a new shape.
at::Tensor sized(const at::Tensor& t, at::IntArrayRef sizes) {
  return t.flatten()[0].expand(sizes).contiguous();
}

/// By operator: its result for this tensor at the argument's position.
std::map<std::string, std::function<at::Tensor(const at::Tensor&)>> calls() {
  const at::Tensor planes = at::rand({1, 2, 6, 6}), small = at::rand({1, 2, 3, 3}),
                   volumes = at::rand({1, 2, 4, 4, 4});
  const at::Tensor framed = at::rand({1, 2, 8, 8}), halves = at::rand({1, 2, 2, 2, 2}),
                   rows = at::rand({1, 2, 8});
  const at::Tensor target = at::zeros({6}, at::kLong), weight = at::ones({6});
  const auto windows = std::get<1>(at::max_pool2d_with_indices(planes, 2, 2));
  const auto blocks = std::get<1>(at::max_pool3d_with_indices(volumes, 2, 2));
  const auto adapted = std::get<1>(at::adaptive_max_pool2d(planes, {3, 3}));
  return {
      {"zeros_like", [](const at::Tensor& t) { return at::zeros_like(t); }},
      {"ones_like", [](const at::Tensor& t) { return at::ones_like(t); }},
      {"full_like", [](const at::Tensor& t) { return at::full_like(t, 3); }},
      {"empty_like", [](const at::Tensor& t) { return at::empty_like(t).zero_(); }},
      {"rand_like", [](const at::Tensor& t) { return at::rand_like(t); }},
      {"randn_like", [](const at::Tensor& t) { return at::randn_like(t); }},
      {"randint_like", [](const at::Tensor& t) { return at::randint_like(t, 9); }},
      {"new_empty", [](const at::Tensor& t) { return t.new_empty({3}).zero_(); }},
      {"new_empty_strided", [](const at::Tensor& t) { return t.new_empty_strided({3}, {1}).zero_(); }},
      {"new_full", [](const at::Tensor& t) { return t.new_full({3}, 2); }},
      {"new_ones", [](const at::Tensor& t) { return t.new_ones({3}); }},
      {"new_zeros", [](const at::Tensor& t) { return t.new_zeros({3}); }},
      {"nll_loss_backward",
       [=](const at::Tensor& t) {
         return at::nll_loss_backward(at::ones({}), sized(t, {6, 6}), target, weight, at::Reduction::Mean,
                                      -100, at::full({}, 6.0));
       }},
      {"nll_loss2d_backward",
       [=](const at::Tensor& t) {
         return at::nll_loss2d_backward(at::ones({}), sized(t, {1, 1, 6, 6}), at::zeros({1, 6, 6}, at::kLong),
                                        at::ones({1}), at::Reduction::Mean, -100, at::full({}, 36.0));
       }},
      {"avg_pool2d_backward",
       [=](const at::Tensor& t) {
         return at::avg_pool2d_backward(small, sized(t, {1, 2, 6, 6}), 2, 2, 0, false, true, {});
       }},
      {"_adaptive_avg_pool2d_backward",
       [=](const at::Tensor& t) {
         return at::_adaptive_avg_pool2d_backward(small, sized(t, {1, 2, 6, 6}));
       }},
      {"adaptive_max_pool2d_backward",
       [=](const at::Tensor& t) {
         return at::adaptive_max_pool2d_backward(small, sized(t, {1, 2, 6, 6}), adapted);
       }},
      {"max_pool2d_with_indices_backward",
       [=](const at::Tensor& t) {
         return at::max_pool2d_with_indices_backward(small, sized(t, {1, 2, 6, 6}), 2, 2, 0, 1, false,
                                                     windows);
       }},
      {"avg_pool3d_backward",
       [=](const at::Tensor& t) {
         return at::avg_pool3d_backward(halves, sized(t, {1, 2, 4, 4, 4}), 2, 2, 0, false, true, {});
       }},
      {"_adaptive_avg_pool3d_backward",
       [=](const at::Tensor& t) {
         return at::_adaptive_avg_pool3d_backward(halves, sized(t, {1, 2, 4, 4, 4}));
       }},
      {"max_pool3d_with_indices_backward",
       [=](const at::Tensor& t) {
         return at::max_pool3d_with_indices_backward(halves, sized(t, {1, 2, 4, 4, 4}), 2, 2, 0, 1, false,
                                                     blocks);
       }},
      {"reflection_pad1d_backward",
       [=](const at::Tensor& t) {
         return at::reflection_pad1d_backward(rows, sized(t, {1, 2, 6}), {1, 1});
       }},
      {"replication_pad1d_backward",
       [=](const at::Tensor& t) {
         return at::replication_pad1d_backward(rows, sized(t, {1, 2, 6}), {1, 1});
       }},
      {"reflection_pad2d_backward",
       [=](const at::Tensor& t) {
         return at::reflection_pad2d_backward(at::rand({1, 2, 8, 8}), sized(t, {1, 2, 6, 6}), {1, 1, 1, 1});
       }},
      {"replication_pad2d_backward",
       [=](const at::Tensor& t) {
         return at::replication_pad2d_backward(at::rand({1, 2, 8, 8}), sized(t, {1, 2, 6, 6}), {1, 1, 1, 1});
       }},
  };
}

TEST(OpFacts, WhatLendsItsShapeAloneChangesNothingByItsValues) {
  const auto known = calls();
  const at::Tensor well = at::rand({1, 1, 6, 6}),
                   bad = at::full({1, 1, 6, 6}, std::numeric_limits<double>::quiet_NaN(), at::kFloat);
  for (const auto& [name, call] : known) {
    at::manual_seed(3);
    const at::Tensor a = call(well);
    at::manual_seed(3);
    EXPECT_TRUE(at::equal(a, call(bad))) << name;
  }
  // … and every operator in that list was checked.
  std::set<std::string> said;
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    if (!name.name.starts_with("aten::") || name.overload_name.ends_with("out") ||
        name.overload_name == "grad_input")
      continue;
    const auto handle = c10::Dispatcher::singleton().findSchema(name);
    if (!handle) continue;
    const auto& arguments = handle->schema().arguments();
    for (std::size_t i = 0; i < arguments.size() && i < 2; ++i)
      if (!argument_use(name.name, {arguments[i].name(), i, false, false}).read &&
          !overwrites_blindly(name.name) && arguments[i].type()->kind() == c10::TypeKind::TensorType &&
          !reads_scratch(name.name, arguments[i].name()))
        said.insert(name.name.substr(6));
  }
  for (const std::string& name : said) EXPECT_TRUE(known.count(name)) << name;
  for (const auto& [name, call] : known) EXPECT_TRUE(said.count(name)) << name << " is read";
}

}  // namespace
}  // namespace nanquest
