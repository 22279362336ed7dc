/// What the look at steps in which nothing is learned asks of values and of the recorded step.
///
/// The look is made in Python (nanquest/learn), in a few steps only. A gradient that is missing or zero is no
/// fault by itself: an unused expert has none. What separates the two is on record: whether the loss was
/// computed from the weight (AttachSession::feed_loss), and which op made zeros of a gradient (zeros_made).
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace nanquest::attach {

/// The largest |x| of each tensor; Inf counts, NaN doesn't. The tensors must be plain (is_plain). Waits for
/// their devices.
std::vector<double> largest(const std::vector<at::Tensor>& tensors);

/// From `begins` true until false, ATen calls of this thread do not belong to the training (ObserverPause).
void aside(bool begins);

}  // namespace nanquest::attach
