/// derivative: is an op differentiable where it was called? Found by calling the op itself, in fp64, not from
/// a list.
///
/// The op is computed at the recorded point and ever nearer to it. Where the difference shrinks more slowly
/// than the distance, the slope is unbounded (sqrt at 0, acos at 1); where the slopes of the two sides differ
/// there is no derivative (a norm at 0). From zeros the steps are 1e-60 to 1e-100, far less than the smallest
/// number of fp32, so that a tiny value isn't taken for a zero; from other numbers 1e-3 to 1e-7 of
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
  double far = 0, near = 0;  ///< largest slope of a singular element, from farther away and from nearer
  double distance_far = 0, distance_near = 0;
};

/// One entry per returned tensor; `singular` is undefined for those that are not floating-point. Empty if the
/// op can't be run like this or draws random numbers. About two dozen evaluations of the op in fp64.
std::vector<Slopes> slopes_of(const OpRow& op, const std::vector<c10::IValue>& arguments);

/// True if every true element of `part` is one of `whole`, both masks, after broadcasting; also if the op
/// that made the shape of `whole` dropped dimensions `reduced`, and if both have as many elements.
bool covers(const at::Tensor& whole, const at::Tensor& part, const std::vector<std::int64_t>& reduced = {});

/// Dimensions that `op` reduced and did not keep, by its arguments `dim` and `keepdim`; empty if there are
/// none, or if it reduced all.
std::vector<std::int64_t> reduced_dimensions(const Case& c, std::int32_t op);

/// `mask`, over a result without the `reduced` dimensions, expanded to `shape` of the tensor that was read;
/// undefined if they don't fit.
at::Tensor spread(const at::Tensor& mask, at::IntArrayRef shape, const std::vector<std::int64_t>& reduced);

/// The call of the forward op that the culprit differentiates, if that was at a pole of this kind wherever
/// the derivative is bad, and gave an infinity there; `born`: where. Nothing for a derivative that the
/// program wrote.
std::optional<Elements> pole_differentiated(const Case& c, Pole kind);

/// True for an op of a derivative that the program wrote itself (an autograd.Function's backward, in Python
/// or C++): its arithmetic is the program's, and does not differentiate an op.
bool is_written_by_hand(const OpRow& op);

}  // namespace nanquest
