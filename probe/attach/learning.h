/// What the look at steps in which nothing is learned asks of values and of the recorded step.
///
/// The look is made in Python (nanquest/learn), in a few steps only. A gradient that is missing or zero is no
/// fault by itself: an unused expert has none. What separates the two is on record: whether the loss was
/// computed from the weight (feed_loss), and which op made zeros of a gradient (zeros_made).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace nanquest::attach {

class AttachSession;

// At a gate, before the update:

/// For each weight 1 if an op of the step with a derivative read it, and the loss was computed from the
/// result in floating point; else 0. Zeros where the step is not on record.
std::vector<std::int64_t> feed_loss(AttachSession& session, const std::vector<at::Tensor>& weights);
/// For each gradient 1 if the step's backward pass added to values other than 0 that were there before the
/// step; else 0. Zeros where the step is not on record.
std::vector<std::int64_t> carried_over(AttachSession& session, const std::vector<at::Tensor>& gradients);
/// For gradients that hold zeros only: the ops of a watched step that got values other than 0 in its backward
/// pass, made zeros of them, and passed those on to the gradient. A JSON array with one object per gradient:
/// op, module, and `switch` (an activation that is off, not a format), or empty. "" if the step is not
/// watched.
std::string zeros_made(AttachSession& session, const std::vector<at::Tensor>& gradients);

// At any time:

/// The largest |x| of each tensor; Inf counts, NaN doesn't. The tensors must be plain (is_plain). Waits for
/// their devices.
std::vector<double> largest(const std::vector<at::Tensor>& tensors);

/// From `begins` true until false, ATen calls of this thread do not belong to the training (ObserverPause).
void aside(bool begins);

}  // namespace nanquest::attach
