// DEGENERATE_LINALG: a decomposition, an inverse or a determinant of a singular matrix, or the derivative of
// one with repeated eigenvalues. Proof: every matrix whose result is bad is, recomputed in fp64 from the
// inputs of the op (or of the op that it differentiates), singular or of repeated eigenvalues to within the
// rounding of its format; and no input was bad.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "replay/case/values.h"
#include "replay/cause/cause.h"
#include "replay/verdict/numbers.h"

namespace nanquest {
namespace {

/// Which degeneracy breaks an op.
enum class Weak : std::uint8_t { none, singular, diagonal, repeated, indefinite };

struct Operation {
  std::string_view op, matrix;
  Weak value = Weak::none;  ///< of its result
  Weak derivative = Weak::none;
};

constexpr Operation kOperations[] = {
    {"linalg_inv_ex", "A", Weak::singular, Weak::singular},
    {"inverse", "self", Weak::singular, Weak::singular},
    {"_linalg_solve_ex", "A", Weak::singular, Weak::singular},
    {"linalg_lu_solve", "LU", Weak::diagonal, Weak::diagonal},
    {"linalg_solve_triangular", "self", Weak::diagonal, Weak::diagonal},
    {"triangular_solve", "A", Weak::diagonal, Weak::diagonal},
    {"_linalg_slogdet", "A", Weak::singular, Weak::singular},
    {"_linalg_det", "A", Weak::none, Weak::singular},
    {"linalg_cholesky_ex", "self", Weak::indefinite, Weak::indefinite},
    {"cholesky", "self", Weak::indefinite, Weak::indefinite},
    {"cholesky_solve", "input2", Weak::diagonal, Weak::diagonal},
    {"cholesky_inverse", "self", Weak::diagonal, Weak::diagonal},
    {"linalg_lu_factor_ex", "A", Weak::none, Weak::singular},
    {"linalg_lu", "A", Weak::none, Weak::singular},
    {"linalg_qr", "A", Weak::none, Weak::singular},
    {"linalg_lstsq", "self", Weak::singular, Weak::singular},
    {"_linalg_eigh", "A", Weak::none, Weak::repeated},
    {"linalg_eig", "self", Weak::none, Weak::repeated},
    {"_linalg_svd", "A", Weak::none, Weak::repeated},
};

const Operation* operation_of(const OpRow* op) {
  if (!op) return nullptr;
  const std::string name = plain_name(*op);
  const auto found = std::find_if(std::begin(kOperations), std::end(kOperations),
                                  [&](const Operation& o) { return o.op == name; });
  return found == std::end(kOperations) ? nullptr : found;
}

/// How near each matrix of a batch is to being degenerate, relative to its size: 0 is exactly degenerate.
at::Tensor nearness(Weak weak, const at::Tensor& matrices) {
  if (weak == Weak::diagonal) {
    const at::Tensor d = matrices.diagonal(0, -2, -1).abs();
    return d.amin(-1) / matrices.abs().amax({-2, -1}).clamp_min(std::numeric_limits<double>::min());
  }
  if (weak == Weak::indefinite) {
    const at::Tensor e = at::linalg_eigvalsh(matrices);
    return e.amin(-1) / e.abs().amax(-1).clamp_min(std::numeric_limits<double>::min());
  }
  const at::Tensor s = at::linalg_svdvals(matrices);  // largest first
  const at::Tensor largest = s.select(-1, 0).clamp_min(std::numeric_limits<double>::min());
  at::Tensor smallest = s.select(-1, s.size(-1) - 1) / largest;
  if (weak == Weak::singular || s.size(-1) < 2) return smallest;
  return at::minimum((s.narrow(-1, 0, s.size(-1) - 1) - s.narrow(-1, 1, s.size(-1) - 1)).amin(-1) / largest,
                     matrices.size(-1) == matrices.size(-2) ? at::full_like(smallest, 1) : smallest);
}

/// Smallest gap between eigenvalues, for matrices that may have negative ones.
at::Tensor eigen_gap(const at::Tensor& matrices, bool hermitian) {
  const at::Tensor e = hermitian ? at::linalg_eigvalsh(matrices) : at::Tensor();
  if (!e.defined()) return nearness(Weak::repeated, matrices);
  const at::Tensor largest = e.abs().amax(-1).clamp_min(std::numeric_limits<double>::min());
  if (e.size(-1) < 2) return at::ones_like(largest);
  return (e.narrow(-1, 1, e.size(-1) - 1) - e.narrow(-1, 0, e.size(-1) - 1)).amin(-1) / largest;
}

std::string weak_text(Weak weak) {
  switch (weak) {
    case Weak::singular:
      return "singular";
    case Weak::diagonal:
      return "singular (a zero on the diagonal)";
    case Weak::indefinite:
      return "not positive definite";
    default:
      return "of repeated eigenvalues or singular values";
  }
}

std::string measure_text(Weak weak) {
  switch (weak) {
    case Weak::repeated:
      return "smallest gap between eigenvalues or singular values, beside the largest";
    case Weak::indefinite:
      return "smallest eigenvalue beside the largest";
    case Weak::diagonal:
      return "smallest diagonal element beside the largest element";
    default:
      return "smallest singular value beside the largest";
  }
}

/// True for a matrix (in the leading dimensions of `matrices`) whose part of `out` is bad; true for all if
/// the shapes don't show it.
at::Tensor bad_matrices(const at::Tensor& out, const at::Tensor& near) {
  at::Tensor bad = bad_mask(out);
  const auto batch = near.sizes();
  if (bad.dim() < near.dim() || bad.sizes().slice(0, batch.size()) != batch)
    return at::ones(batch, at::kBool);
  while (bad.dim() > near.dim()) bad = at::any(bad, -1);
  return bad;
}

std::optional<Finding> examine_degenerate_linalg(const Case& c, const Subject&) {
  const bool backward = c.op() && c.op()->phase == Phase::backward;
  const std::int32_t forward = backward ? c.forward_of(c.op_index()) : kNone;
  const Operation* differentiated = operation_of(c.row(forward));
  const Operation* own = operation_of(c.op());
  const std::int32_t given_to = differentiated ? forward : c.op_index();
  const Operation* operation = differentiated ? differentiated : own;
  if (!operation) return std::nullopt;
  const Weak weak = differentiated ? operation->derivative : operation->value;
  const at::Tensor given = tensor_of(argument(c, given_to, operation->matrix));
  const at::Tensor out = c.values(c.op_index()).bad_output();
  if (weak == Weak::none || !given.defined() || given.dim() < 2 || given.is_complex() || !out.defined() ||
      !out.is_floating_point() || !all_finite(given) || given.numel() == 0)
    return std::nullopt;
  if (differentiated) {
    for (const at::Tensor& t : c.values(forward).outputs)
      if (!all_finite(t)) return std::nullopt;
  } else {
    for (const at::Tensor& t : tensors_in(c.values(given_to).arguments))
      if (!all_finite(t)) return std::nullopt;
  }
  const at::Tensor near = weak == Weak::repeated ? eigen_gap(wide(given), operation->op == "_linalg_eigh")
                                                 : nearness(weak, wide(given));
  const double n = static_cast<double>(std::max(given.size(-1), given.size(-2)));
  const double rounding = n * (given.scalar_type() == at::kDouble ? 2.3e-16 : 1.2e-7);
  const at::Tensor bad = bad_matrices(out, near);
  const at::Tensor degenerate = near <= rounding;
  if (count_true(bad) == 0 || count_true(at::logical_and(degenerate, bad)) == 0) return std::nullopt;
  if (bad.numel() > 1 && out.dim() > near.dim() &&
      count_true(at::logical_and(bad, at::logical_not(degenerate))) > 0 && count_true(bad) < bad.numel())
    return std::nullopt;
  Finding f;
  f.precision = true;
  f.source = "eigenvalues and singular values of the recorded matrix, computed in fp64";
  const double smallest = near.masked_select(degenerate).min().item<double>();
  f.evidence.push_back({measure_text(weak), number_text(smallest), number_text(rounding)});
  f.evidence.push_back({"matrices that are degenerate so",
                        std::to_string(count_true(degenerate)) + " of " + std::to_string(near.numel())});
  f.explanation = c.op_text(c.op_index()) +
                  (differentiated ? " (the derivative of " + c.op_text(forward) + ")" : std::string()) +
                  " works on a matrix that is " + weak_text(weak) + ": " + measure_text(weak) + " is " +
                  number_text(smallest) + ", where its format rounds at " + number_text(rounding) + ".";
  f.advice =
      weak == Weak::repeated
          ? "Don't differentiate eigenvectors where eigenvalues meet: use a function of the matrix that "
            "needs none, or add small different numbers to the diagonal."
          : "Add a small multiple of the identity (jitter), or use lstsq or pinv with a tolerance.";
  f.wanted.push_back(regularise_matrix(c, given_to, operation->matrix));
  return f;
}

}  // namespace

NANQUEST_CAUSE(degenerate_linalg) = {
    .label = Label::degenerate_linalg,
    .origins = {Origin::op},
    .examine = examine_degenerate_linalg,
};

}  // namespace nanquest
