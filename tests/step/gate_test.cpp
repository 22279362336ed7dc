// The gate against ATen's own operators in fp64, for every type, position and layout.
#include "probe/step/gate.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace nanquest {
namespace {

at::Tensor leaf(at::IntArrayRef shape, at::ScalarType type) {
  return at::zeros(shape, at::TensorOptions().dtype(type)).requires_grad_(true);
}

double reference_sum_squares(const at::Tensor& t) {
  return t.to(at::kDouble).square().sum().item<double>();
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor x = a.contiguous(), y = b.contiguous();
  return x.sizes() == y.sizes() && x.scalar_type() == y.scalar_type() &&
         std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0;
}

class GateTypes : public ::testing::TestWithParam<at::ScalarType> {};
INSTANTIATE_TEST_SUITE_P(All, GateTypes,
                         ::testing::Values(at::kDouble, at::kFloat, at::kHalf, at::kBFloat16));

/// What PyTorch's own unscaling makes of `g`; it has no factor beyond fp32, so fp64 is multiplied by ATen.
at::Tensor unscaled(const at::Tensor& g, double factor) {
  at::Tensor out = g.clone();
  if (factor == 1) return out;
  if (g.scalar_type() == at::kDouble) return out.mul_(factor);
  at::Tensor found = at::zeros({1}), inverse = at::full({1}, factor, at::kFloat);
  at::_amp_foreach_non_finite_check_and_unscale_(at::TensorList(out), found, inverse);
  return out;
}

TEST_P(GateTypes, unscales_and_measures_as_aten_does) {
  at::manual_seed(7);
  for (const double scale : {1.0, 65536.0, 3.0, 1.0 / 8}) {
    for (const std::int64_t n : {1, 7, 31, 2048, 2049, 70000, 700001}) {
      at::Tensor p = leaf({n}, GetParam());
      at::Tensor g = (at::randn({n}, at::kDouble) * 300).to(GetParam());
      g[0] = 1e-7;  // subnormal in fp16
      const at::Tensor expected = unscaled(g, 1.0 / scale);
      p.mutable_grad() = g;
      GradientGate gate;
      gate.watch(p);
      const GateResult seen = gate.run(scale);
      EXPECT_TRUE(same_bits(p.grad(), expected)) << "n " << n << " scale " << scale;
      const double reference = reference_sum_squares(expected);
      EXPECT_NEAR(seen.norm * seen.norm, reference, 1e-12 * reference);
      EXPECT_EQ(seen.amax, expected.to(at::kDouble).abs().max().item<double>());
      EXPECT_EQ(seen.non_finite, 0u);
      EXPECT_TRUE(seen.finite());
    }
  }
}

TEST_P(GateTypes, finds_one_bad_element_wherever_it_is) {
  const double inf = std::numeric_limits<double>::infinity();
  const std::int64_t n = 70001;  // several chunks, and tails of every loop
  const double largest = 3;
  for (const std::int64_t at : {0, 1, 7, 8, 15, 2047, 2048, 16383, 32768, 65535, 65536, 69999, 70000}) {
    for (const double bad : {inf, -inf, std::nan("")}) {
      at::Tensor p = leaf({n}, GetParam());
      at::Tensor g = at::full({n}, -largest, GetParam());
      g[at] = bad;
      p.mutable_grad() = g;
      GradientGate gate;
      gate.watch(p);
      const GateResult seen = gate.run(1);
      EXPECT_EQ(seen.non_finite, 1u) << at;
      EXPECT_FALSE(seen.finite());
      EXPECT_FALSE(std::isfinite(seen.norm));
      EXPECT_EQ(seen.amax, std::isnan(bad) ? largest : inf);
    }
  }
}

// Every finite fp16 and bf16 pattern, times factors that overflow, underflow and tie.
TEST(Gate, sixteen_bit_products_equal_atens_for_every_pattern) {
  for (const at::ScalarType type : {at::kHalf, at::kBFloat16}) {
    at::Tensor bits = at::arange(65536, at::kInt).to(at::kShort);
    const at::Tensor all = bits.view(type);
    const at::Tensor finite = all.masked_select(at::isfinite(all));
    for (const double factor : {0.5, 1.0 / 3, 1.0 / 1024, 1.0 / 65536, 2.0, 3.0, 1000.0}) {
      at::Tensor p = leaf(finite.sizes(), type);
      p.mutable_grad() = finite.clone();
      GradientGate gate;
      gate.watch(p);
      gate.run(1.0 / factor);
      const at::Tensor expected = unscaled(finite, 1.0 / (1.0 / factor));
      EXPECT_TRUE(same_bits(p.grad(), expected)) << c10::toString(type) << " × " << factor;
    }
  }
}

TEST(Gate, large_gradients_have_a_norm_though_fp32_has_none) {
  at::Tensor p = leaf({1000}, at::kFloat);
  p.mutable_grad() = at::full({1000}, 1e20, at::kFloat);
  ASSERT_TRUE(std::isinf(at::linalg_vector_norm(p.grad() * 1.0, 2).square().item<float>()));
  GradientGate gate;
  gate.watch(p);
  const GateResult seen = gate.run(1);
  EXPECT_TRUE(seen.finite());
  EXPECT_NEAR(seen.norm, static_cast<double>(1e20f) * std::sqrt(1000.0), 1e8);
}

TEST(Gate, finite_gradients_whose_norm_is_beyond_fp64_are_bad) {
  at::Tensor p = leaf({4}, at::kDouble);
  p.mutable_grad() = at::full({4}, 1e200, at::kDouble);
  GradientGate gate;
  gate.watch(p);
  const GateResult seen = gate.run(1);
  EXPECT_EQ(seen.non_finite, 0u);
  EXPECT_FALSE(seen.finite());  // clipping to this norm would make all of them zero
}

TEST(Gate, mixed_types_shapes_and_missing_gradients_add_up) {
  at::manual_seed(3);
  std::vector<at::Tensor> parameters;
  GradientGate gate;
  double expected = 0;
  const at::ScalarType types[] = {at::kFloat, at::kHalf, at::kBFloat16, at::kDouble};
  for (int i = 0; i < 12; ++i) {
    at::Tensor p = leaf({i, 13}, types[i % 4]);
    parameters.push_back(p);
    EXPECT_EQ(gate.watch(p), static_cast<std::size_t>(i));
    if (i == 5) continue;
    p.mutable_grad() = at::randn({i, 13}, at::kDouble).to(types[i % 4]);
    expected += reference_sum_squares(p.grad());
  }
  EXPECT_EQ(gate.watch(parameters[3]), 3u);  // tied weights count once
  const GateResult seen = gate.run(1);
  EXPECT_NEAR(seen.norm, std::sqrt(expected), 1e-12 * seen.norm);
  EXPECT_EQ(gate.stats(5).sum_squares, 0);
  EXPECT_NEAR(gate.stats(7).sum_squares, reference_sum_squares(parameters[7].grad()), 1e-9);
  gate.clear_gradients();
  for (const at::Tensor& p : parameters) EXPECT_FALSE(p.grad().defined());
}

TEST(Gate, strided_and_sparse_gradients_agree_with_aten) {
  at::manual_seed(5);
  at::Tensor strided = leaf({40, 30}, at::kFloat);
  strided.mutable_grad() = at::randn({40, 60}, at::kFloat).slice(1, 0, 60, 2);
  at::Tensor channels_last = leaf({2, 3, 4, 5}, at::kFloat);
  channels_last.mutable_grad() =
      at::randn({2, 3, 4, 5}, at::kFloat).contiguous(at::MemoryFormat::ChannelsLast);
  at::Tensor sparse = leaf({10, 4}, at::kFloat);
  const at::Tensor index = at::tensor({1, 7, 1}, at::kLong).reshape({1, 3});  // row 1 twice: they add up
  sparse.mutable_grad() = at::sparse_coo_tensor(index, at::randn({3, 4}, at::kFloat), {10, 4}, at::kFloat);
  at::Tensor complex = leaf({33}, at::kComplexFloat);
  complex.mutable_grad() = at::randn({33}, at::kComplexFloat);

  GradientGate gate;
  const std::vector<at::Tensor> all = {strided, channels_last, sparse, complex};
  std::vector<at::Tensor> expected;
  for (const at::Tensor& p : all) {
    gate.watch(p);
    expected.push_back((p.grad().is_sparse() ? p.grad().to_dense() : p.grad()) * 0.25);
  }
  EXPECT_TRUE(gate.run(4).finite());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const at::Tensor got = all[i].grad().is_sparse() ? all[i].grad().to_dense() : all[i].grad();
    EXPECT_TRUE(at::allclose(got, expected[i], 0, 0)) << i;
    const double squares = expected[i].abs().to(at::kDouble).square().sum().item<double>();
    EXPECT_NEAR(gate.stats(i).sum_squares, squares, 1e-6 * squares) << i;
  }
  strided.mutable_grad()[3][4] = std::numeric_limits<float>::quiet_NaN();
  strided.mutable_grad()[5][6] = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(gate.run(1).non_finite, 2u);
  EXPECT_EQ(gate.stats(0).amax, std::numeric_limits<double>::infinity());
}

TEST(Gate, result_does_not_depend_on_threads) {
  at::manual_seed(9);
  at::Tensor p = leaf({3000000}, at::kFloat);
  p.mutable_grad() = at::randn({3000000}, at::kFloat);
  GradientGate gate;
  gate.watch(p);
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const double one = gate.run(1).norm;
  at::set_num_threads(2);
  const double two = gate.run(1).norm;
  at::set_num_threads(threads);
  EXPECT_EQ(one, two);
}

}  // namespace
}  // namespace nanquest
