// DEGENERATE_LINALG: its sample, its variants, and what looks like it and is not.
#include "tests/replay/diagnose/sample.h"

namespace nanquest {
namespace {

using testing::expect_cause;
using testing::expect_healed;
using testing::leaf;
using testing::trained;

TEST(DegenerateLinalg, ItsSampleIsExplainedAndTheFixIsVerified) {
  testing::expect_sample("degenerate_linalg", {.cause = Label::degenerate_linalg,
                                               .phase = Phase::backward,
                                               .op = "aten::div_",
                                               .module = "metric",
                                               .precision = PrecisionVerdict::structural});
}

at::Tensor weights(at::IntArrayRef shape) {
  return at::arange(1, 1 + at::empty(shape).numel(), at::kFloat).view(shape).cos();
}

TEST(DegenerateLinalg, RepeatedSingularValues) {
  const at::Tensor w = leaf(at::eye(3));
  expect_healed(trained(w,
                        [&] {
                          const auto [u, s, v] = at::linalg_svd(w * 2);
                          return (u * weights({3, 3})).sum() + (v * weights({3, 3})).sum() + s.sum();
                        }),
                Label::degenerate_linalg);
}

TEST(DegenerateLinalg, EigenvectorsOfABatchInFp64) {
  const at::Tensor w = leaf(at::stack({at::eye(3, at::kDouble), at::diag(at::tensor({1.0, 2.0, 3.0}))}));
  expect_healed(trained(w,
                        [&] {
                          const auto [values, vectors] = at::linalg_eigh(w * 2);
                          return (vectors * weights({3, 3})).sum() + values.sum();
                        }),
                Label::degenerate_linalg);
}

TEST(DegenerateLinalg, LogDeterminantOfASingularMatrix) {
  const at::Tensor w = leaf(at::diag(at::tensor({1.f, 0.f, 3.f})));
  expect_healed(trained(w, [&] { return std::get<1>(at::linalg_slogdet(w * 1)); }), Label::degenerate_linalg,
                "aten::_linalg_slogdet");
}

TEST(DegenerateLinalg, ATriangularSystemWithAZeroOnItsDiagonal) {
  const at::Tensor w = leaf(at::diag(at::tensor({1.f, 0.f, 3.f})));
  expect_healed(trained(w,
                        [&] {
                          return at::linalg_solve_triangular(w * 1, at::ones({3, 1}), true).sum();
                        }),
                Label::degenerate_linalg, "aten::linalg_solve_triangular");
}

TEST(DegenerateLinalg, ABadMatrixIsNot) {
  const at::Tensor w = leaf(at::tensor({-1.f, 0.5f, 0.5f, 2.f}).view({2, 2}));
  expect_cause(trained(w,
                       [&] {
                         const auto [values, vectors] = at::linalg_eigh(at::sqrt(w));
                         return values.sum();
                       }),
               Label::domain, "aten::sqrt");
}

TEST(DegenerateLinalg, AnOverflowInAProductBesideItIsNot) {
  const at::Tensor w = leaf(at::full({3, 3}, 1e30f));
  expect_cause(trained(w, [&] { return at::softmax(at::mm(w, w), 1).pow(2).sum(); }), Label::fp16_overflow,
               "aten::mm");
}

TEST(DegenerateLinalg, ANormOfZeroIsNot) {
  const at::Tensor w = leaf(at::zeros({3}));
  expect_cause(trained(w, [&] { return (w / at::linalg_vector_norm(w)).sum(); }), Label::div_zero);
}

}  // namespace
}  // namespace nanquest
