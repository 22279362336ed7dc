/// derivative: is an op differentiable where it was called? Asked of the op itself, in fp64, and of no list.
///
/// The op is computed at the recorded point and ever nearer to it. Where the difference shrinks more slowly
/// than the distance, the slope grows beyond all bounds (sqrt at 0, acos at 1); where it differs from one
/// side to the other there is none (a norm at 0). Zeros are left by 1e-60 to 1e-100, far less than the
/// smallest number of fp32, so that a tiny value isn't taken for a zero; other numbers by 1e-3 to 1e-7 of
/// themselves.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <optional>
#include <vector>

#include "replay/case/case.h"
#include "replay/case/semantics.h"

namespace nanquest {

/// One output of an op at the point where it was called.
struct Slopes {
  at::Tensor singular;       ///< bool, shape of the output: finite there, but without a finite derivative
  double far = 0, near = 0;  ///< largest slope of a singular element, from further away and from nearer
  double distance_far = 0, distance_near = 0;
};

/// One entry per returned tensor; `singular` is undefined for those that are no floating point. Empty if the
/// op can't be run so or draws random numbers. About two dozen evaluations of the op in fp64.
std::vector<Slopes> slopes_of(const OpRow& op, const std::vector<c10::IValue>& arguments);

/// True if every true element of `part` is one of `whole`, both masks, after broadcasting; also where the op
/// that made the shape of `whole` dropped dimensions `reduced`, and if both have as many elements.
bool covers(const at::Tensor& whole, const at::Tensor& part, const std::vector<std::int64_t>& reduced = {});

/// Dimensions that `op` reduced and did not keep, by its arguments `dim` and `keepdim`; empty if there are
/// none, or if it reduced all.
std::vector<std::int64_t> reduced_dimensions(const Case& c, std::int32_t op);

/// `mask`, of what an op made of `reduced` dimensions, in a tensor of `shape` that it read; undefined if they
/// don't belong together.
at::Tensor spread(const at::Tensor& mask, at::IntArrayRef shape, const std::vector<std::int64_t>& reduced);

/// The call of the forward op that the culprit differentiates, if that stood at a pole of this kind wherever
/// the derivative is bad, and gave an infinity there; `born`: where. Nothing for a derivative that the
/// program wrote.
std::optional<Elements> pole_differentiated(const Case& c, Pole kind);

/// True for an op of a derivative that the program wrote itself (an autograd.Function's backward, or a C++
/// one's): its arithmetic is the program's, and differentiates no op.
bool is_written_by_hand(const OpRow& op);

}  // namespace nanquest
