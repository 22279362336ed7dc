// Fused attention as the CPU computes it, against PyTorch's own attention and its derivatives in fp64.
#include "replay/trace/attention.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>

namespace nanquest::trace {
namespace {

struct Inputs {
  std::string family;
  at::ScalarType type = at::kFloat;
  bool causal = false, bias = false;
  std::int64_t key_heads = 4;
};

TensorRow row_of(std::vector<std::int64_t> sizes, DType type = DType::float32) {
  TensorRow row;
  row.sizes = std::move(sizes);
  row.dtype = type;
  return row;
}

const c10::FunctionSchema& schema_of(const std::string& name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name.c_str(), "").schema();
}

/// The arguments in the schema's order: those given by name, its defaults, else an undefined tensor or zero.
std::vector<c10::IValue> stack_for(const c10::FunctionSchema& schema,
                                   const std::map<std::string, c10::IValue>& given) {
  std::vector<c10::IValue> stack;
  for (const c10::Argument& argument : schema.arguments()) {
    const auto found = given.find(argument.name());
    if (found != given.end())
      stack.push_back(found->second);
    else if (argument.default_value())
      stack.push_back(*argument.default_value());
    else if (argument.type()->kind() == c10::TypeKind::TensorType)
      stack.emplace_back(at::Tensor());
    else if (argument.type()->kind() == c10::TypeKind::OptionalType)
      stack.emplace_back();
    else
      stack.emplace_back(std::int64_t{0});
  }
  return stack;
}

class Attention : public ::testing::TestWithParam<Inputs> {};

TEST_P(Attention, GivesWhatPyTorchGivesInFp64) {
  const Inputs& p = GetParam();
  at::manual_seed(3);
  const auto draw = [&](std::int64_t heads, std::int64_t rows) {
    return at::randn({2, heads, rows, 8}).to(p.type);
  };
  const at::Tensor q = draw(4, 6), k = draw(p.key_heads, p.causal ? 6 : 5),
                   v = draw(p.key_heads, p.causal ? 6 : 5);
  const at::Tensor bias = p.bias ? at::randn({1, 1, 6, k.size(2)}).to(p.type) : at::Tensor();
  const at::Tensor grad = draw(4, 6);

  std::vector<at::Tensor> wide;
  for (const at::Tensor& t : {q, k, v}) wide.push_back(t.to(at::kDouble).requires_grad_());
  if (p.bias) wide.push_back(bias.to(at::kDouble).requires_grad_());
  const std::int64_t repeats = 4 / p.key_heads;
  at::Tensor expected = at::scaled_dot_product_attention(
      wide[0], wide[1].repeat_interleave(repeats, 1), wide[2].repeat_interleave(repeats, 1),
      p.bias ? std::optional<at::Tensor>(wide[3]) : std::nullopt, 0.0, p.causal);
  const auto slopes = torch::autograd::grad({expected}, wide, {grad.to(at::kDouble)});

  const std::string name = "aten::_scaled_dot_product_" + p.family + "_attention";
  const double close = p.type == at::kHalf ? 2e-3 : 1e-5;
  const auto near = [&](const at::Tensor& got, const at::Tensor& wanted, const char* what) {
    EXPECT_EQ(got.scalar_type(), p.type) << what;
    EXPECT_LT((got.to(at::kDouble) - wanted).abs().max().item<double>(),
              close * wanted.abs().max().item<double>())
        << what;
  };
  std::map<std::string, c10::IValue> given{{"query", q},       {"key", k},
                                           {"value", v},       {"is_causal", p.causal},
                                           {"dropout_p", 0.0}, {"compute_log_sumexp", true}};
  if (p.bias) given["attn_bias"] = bias;
  const TensorRow out = row_of({2, 4, 6, 8}), padded = row_of({2, 4, 32}), seed = row_of({}, DType::int64);
  std::vector<c10::IValue> stack = stack_for(schema_of(name), given);
  ASSERT_TRUE(compute_attention(name, schema_of(name), {&out, &padded, &seed, nullptr}, 7, stack));
  ASSERT_EQ(stack.size(), 4U);
  near(stack[0].toTensor(), expected.detach(), "output");
  at::Tensor scores =
      at::matmul(wide[0], wide[1].repeat_interleave(repeats, 1).transpose(-2, -1)) / std::sqrt(8.0);
  if (p.bias) scores = scores + wide[3];
  if (p.causal) scores = scores.masked_fill(at::ones({6, 6}, at::kBool).triu(1), -INFINITY);
  EXPECT_LT((stack[1].toTensor().narrow(2, 0, 6).to(at::kDouble) - at::logsumexp(scores, {-1}))
                .abs()
                .max()
                .item<double>(),
            close);
  EXPECT_EQ(stack[1].toTensor().size(2), 32);
  EXPECT_FALSE(stack[3].toTensor().defined());

  given.merge(std::map<std::string, c10::IValue>{{"grad_out", grad}, {"grad_out_", grad}});
  const std::string back = name + "_backward";
  const TensorRow any = row_of({});
  stack = stack_for(schema_of(back), given);
  ASSERT_TRUE(
      compute_attention(back, schema_of(back), {&any, &any, &any, p.bias ? &any : nullptr}, 0, stack));
  for (std::size_t i = 0; i < slopes.size(); ++i) near(stack[i].toTensor(), slopes[i], "gradient");
}

INSTANTIATE_TEST_SUITE_P(Families, Attention,
                         ::testing::Values(Inputs{"flash"}, Inputs{"flash", at::kHalf, true},
                                           Inputs{"flash", at::kFloat, false, false, 2},
                                           Inputs{"efficient", at::kFloat, false, true},
                                           Inputs{"efficient", at::kHalf, true},
                                           Inputs{"cudnn", at::kFloat, true, false, 2}));

TEST(Attention, IsNotComputedWhereEveryKeyIsMasked) {
  const std::string name = "aten::_scaled_dot_product_efficient_attention";
  const at::Tensor q = at::randn({1, 1, 2, 4});
  const TensorRow out = row_of({1, 1, 2, 4}), sums = row_of({1, 1, 32});
  const auto computes = [&](const at::Tensor& bias) {
    std::vector<c10::IValue> stack = stack_for(
        schema_of(name),
        {{"query", q}, {"key", q}, {"value", q}, {"attn_bias", bias}, {"compute_log_sumexp", true}});
    return compute_attention(name, schema_of(name), {&out, &sums, nullptr, nullptr}, 1, stack);
  };
  EXPECT_TRUE(computes(at::zeros({2, 2})));
  EXPECT_FALSE(computes(at::full({2, 2}, -INFINITY)));
}

// out is linear in v, so the forward op itself gives its derivative: <dO, out(v)> = <dv, v> holds for the
// same mask alone.
TEST(Attention, ItsDropoutIsTheSameInForwardAndBackward) {
  const std::string name = "aten::_scaled_dot_product_flash_attention", back = name + "_backward";
  const at::Tensor q = at::randn({1, 2, 8, 4}), v = at::randn({1, 2, 8, 4}), grad = at::randn({1, 2, 8, 4});
  const TensorRow out = row_of({1, 2, 8, 4}), sums = row_of({1, 2, 8}), seed = row_of({2}, DType::int64),
                  any = row_of({});
  std::map<std::string, c10::IValue> given{{"query", q}, {"key", q}, {"value", v}, {"dropout_p", 0.5}};
  const auto forward = [&](std::int64_t draw) {
    std::vector<c10::IValue> stack = stack_for(schema_of(name), given);
    EXPECT_TRUE(compute_attention(name, schema_of(name),
                                  {&out, &sums, nullptr, nullptr, &seed, nullptr, nullptr}, draw, stack));
    return stack;
  };
  const auto first = forward(5);
  EXPECT_TRUE(at::equal(first[0].toTensor(), forward(5)[0].toTensor()));
  EXPECT_FALSE(at::equal(first[0].toTensor(), forward(6)[0].toTensor()));
  given.merge(std::map<std::string, c10::IValue>{{"grad_out", grad}, {"philox_seed", first[4]}});
  std::vector<c10::IValue> stack = stack_for(schema_of(back), given);
  ASSERT_TRUE(compute_attention(back, schema_of(back), {&any, &any, &any}, 0, stack));
  EXPECT_NEAR((grad * first[0].toTensor()).sum().item<double>(),
              (stack[2].toTensor() * v).sum().item<double>(), 1e-4);
}

}  // namespace
}  // namespace nanquest::trace
