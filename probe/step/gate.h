/// The gate: what a step's gradients are like, measured in the one pass that unscales them.
///
///     GradientGate gate;
///     for (at::Tensor& p : parameters) gate.watch(p);
///     gate.clear_gradients();
///     … forward, backward …
///     GateResult seen = gate.run(loss_scale, loss);   // .grad is unscaled now
///     if (!seen.finite()) … gate.stats(i).non_finite …
///
/// The sum of squares is kept in fp64, so gradients of 1e20 have a finite norm (in fp32 it would be infinite,
/// and clipping would silently make them zero). A bad step's gradients are unscaled too; that does not matter
/// because the step is undone. The results of a device are copied to the host once. The host need not wait:
///
///     gate.start(look, loss_scale, {loss, norm});
///     … if (look.ready()) … GateResult seen = gate.finish(look);      // seen.loss is the first number
///
/// All calls from one thread; never changes a parameter.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "probe/step/tensor_pass.h"

namespace nanquest {

/// All gradients of one step together, and its loss.
struct GateResult {
  double loss = 0;               ///< 0 if none was given
  double norm = 0;               ///< L2 norm over all gradients; Inf or NaN if an element is
  double amax = 0;               ///< largest |g|: Inf counts, NaN doesn't
  std::uint64_t non_finite = 0;  ///< elements that are NaN or Inf
  /// True if all gradients and their norm are finite. False also for finite fp64 gradients whose norm
  /// overflows fp64: clipping would make them zero.
  bool finite() const;
};

/// A look at all gradients that is on its way. Many may be.
class GateLook {
 public:
  /// Whether a device has not told yet; `ready`: it has, and `finish` does not wait.
  bool pending() const { return pass_.pending(); }
  bool ready() const { return pass_.ready(); }
  /// 1 on a device if something is NaN or Inf, else 0 (TensorPass::word); may be undefined.
  at::Tensor word() const { return pass_.word(); }
  /// After `finish`: number `index` of those that `start` was given; nothing for an undefined one.
  std::optional<double> number(std::size_t index) const {
    return index < numbers_.size() ? numbers_[index] : std::nullopt;
  }

 private:
  friend class GradientGate;
  TensorPass pass_;
  std::vector<std::ptrdiff_t> places_;  ///< of the numbers in the pass; below 0: undefined
  std::vector<std::optional<double>> numbers_;
};

class GradientGate {
 public:
  /// Watches `parameter`'s gradient. A tensor given twice (tied weights) is watched once.
  /// Returns its index in `stats`.
  std::size_t watch(const at::Tensor& parameter);

  /// For callers that must not keep parameters alive: from now on `index` means `parameter`; an undefined one
  /// has no gradient. `index` is at most `size()`.
  void bind(std::size_t index, const at::Tensor& parameter);

  /// Drops every .grad (undefined, not zero), as zero_grad(set_to_none) does.
  void clear_gradients();

  /// Multiplies all gradients by 1/loss_scale in place (reciprocal in fp64, rounded to the type of the
  /// multiplication) and measures them. Missing gradients are ignored. `loss` may be undefined; it is read
  /// together with the rest and not unscaled. May throw c10::Error for gradients that ATen can't multiply.
  GateResult run(double loss_scale, const at::Tensor& loss = {});

  /// The two halves of a run. `numbers` (each may be undefined) are read together with the gradients. What
  /// `finish` tells is then what the last run found. A look is one start and one finish. `loss_in_word`: the
  /// first number is in the look's word too.
  void start(GateLook& look, double loss_scale, const std::vector<at::Tensor>& numbers,
             bool loss_in_word = true);
  GateResult finish(GateLook& look);

  /// What the last run found in the gradient of parameter `index`.
  const LoopStats& stats(std::size_t index) const { return pass_.stats(index); }
  std::size_t size() const { return parameters_.size(); }
  const std::vector<at::Tensor>& parameters() const { return parameters_; }

 private:
  std::vector<std::ptrdiff_t> begin(TensorPass& pass, const std::vector<at::Tensor>& numbers,
                                    bool loss_in_word) const;
  GateResult result() const;

  std::vector<at::Tensor> parameters_;
  TensorPass pass_;
};

}  // namespace nanquest
