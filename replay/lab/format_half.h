/// format_half: the two things that a wider format gives, one without the other.
///
/// A format has a range (its largest and smallest numbers) and a precision (how finely it rounds). A step
/// that is finite in fp32 and not in fp16 lacked one of them. With the range of fp32 and the rounding of fp16
/// an overflow is gone and a cancellation is not; with the range of fp16 and the rounding of fp32 it is the
/// other way round.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "probe/numerics/format.h"
#include "replay/trace/replayer.h"

namespace nanquest {

enum class FormatHalf : std::uint8_t { range, precision };

/// Values of `t`, in a wider format, as if only one half came from it. Given `range`, the wide range is kept
/// and values are rounded as `narrow` rounds. Given `precision`, they are rounded only as `t`'s format does,
/// but what is out of range of `narrow` is ±Inf, and below its smallest normal number only its own subnormal
/// steps are left. Changes `t` in place.
void keep_half(const at::Tensor& t, FormatHalf half, Format narrow);

/// The change of formats in `options`, with only one half of it: applied to the outputs of every op that runs
/// wider than it was recorded.
RunOptions with_half(const TraceGraph& graph, RunOptions options, FormatHalf half);

/// "the range of fp32 and the rounding of fp16", for sentences; `wide` and `narrow` are names of formats.
std::string half_text(FormatHalf half, const std::string& wide, const std::string& narrow);

}  // namespace nanquest
