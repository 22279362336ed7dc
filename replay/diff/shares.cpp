#include "replay/diff/shares.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <exception>

namespace nanquest::diff {

void Shares::add(const at::Tensor& one, const std::vector<at::Tensor>& ranks) {
  if (!one.defined() || !one.is_floating_point() || ranks.size() != with_one_.size()) return;
  std::vector<at::Tensor> flat;
  for (const at::Tensor& t : ranks) {
    if (!t.defined() || t.sizes() != one.sizes() || !t.is_floating_point()) return;
    flat.push_back(t.to(at::kDouble).flatten());
  }
  const at::Tensor whole = one.to(at::kDouble).flatten();
  const auto dot = [](const at::Tensor& a, const at::Tensor& b) { return at::dot(a, b).item<double>(); };
  const double squares = dot(whole, whole);
  if (!std::isfinite(squares)) return;
  squares_ += squares;
  for (std::size_t i = 0; i < flat.size(); ++i) {
    with_one_[i] += dot(flat[i], whole);
    for (std::size_t k = 0; k < flat.size(); ++k) products_[i][k] += dot(flat[i], flat[k]);
  }
  ++weights_;
}

Shares::Fitted Shares::fit() const {
  Fitted result;
  const auto ranks = static_cast<std::int64_t>(with_one_.size());
  if (weights_ == 0 || squares_ == 0) return result;
  try {
    const at::Tensor equations = at::empty({ranks, ranks}, at::kDouble),
                     right = at::empty({ranks, 1}, at::kDouble);
    for (std::int64_t i = 0; i < ranks; ++i) {
      right[i][0] = with_one_[i];
      for (std::int64_t k = 0; k < ranks; ++k) equations[i][k] = products_[i][k];
    }
    const at::Tensor found = at::linalg_solve(equations, right);
    double left = squares_;
    for (std::int64_t i = 0; i < ranks; ++i) {
      const double share = found[i][0].item<double>();
      result.of_rank.push_back(share);
      left -= share * with_one_[i];
    }
    result.apart = std::sqrt(std::max(0.0, left) / squares_);
    if (!std::isfinite(result.apart)) result.of_rank.clear();
  } catch (const std::exception&) {  // the gradients of two ranks are the same up to a factor
    result.of_rank.clear();
  }
  return result;
}

}  // namespace nanquest::diff
