#include "replay/lab/format_half.h"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>
#include <optional>
#include <vector>

namespace nanquest {
namespace {

/// Rounds to this many significant bits, however large or small the number is.
void round_finely(const at::Tensor& t, int significant_bits) {
  const at::Tensor finite = at::isfinite(t);
  const auto [mantissa, exponent] = at::frexp(at::where(finite, t, at::zeros_like(t)));
  const double steps = std::ldexp(1.0, significant_bits);
  t.copy_(at::where(finite, at::ldexp(at::round(mantissa * steps) / steps, exponent), t));
}

void hold_within(const at::Tensor& t, const FormatInfo& narrow) {
  // Everything below half a step past the largest number still rounds down to it.
  const double reach = narrow.max_finite * (1 + std::ldexp(1.0, -narrow.mantissa_bits - 2));
  const double infinity = std::numeric_limits<double>::infinity();
  const at::Tensor steps = at::round(t / narrow.min_subnormal) * narrow.min_subnormal;
  at::Tensor held = at::where(t.abs() < narrow.min_normal, steps, t);
  held = at::where(t > reach, infinity, held);
  t.copy_(at::where(t < -reach, -infinity, held));
}

}  // namespace

void keep_half(const at::Tensor& t, FormatHalf half, Format narrow) {
  if (!t.defined() || !t.is_floating_point() || t.numel() == 0) return;
  at::Tensor wide = t.to(at::kDouble, false, /*copy=*/true);
  half == FormatHalf::range ? round_finely(wide, info(narrow).mantissa_bits + 1)
                            : hold_within(wide, info(narrow));
  t.copy_(wide);
}

RunOptions with_half(const TraceGraph& graph, RunOptions options, FormatHalf half) {
  const PerRow<OpRow, Precision> precision = precision_of_ops(graph, options.precision, options.edit);
  for (const OpId op : graph.ops()) {
    if (precision[op] == Precision::as_recorded) continue;
    std::vector<std::optional<Format>> formats;
    for (const TensorId row : graph.written(op))
      formats.push_back(row ? format_of(graph.tensor(row).dtype) : std::nullopt);
    auto& edit = options.edit.output_edit[op.row()];
    edit = [half, formats, before = edit](std::vector<at::Tensor>& written) {
      if (before) before(written);
      for (std::size_t i = 0; i < written.size() && i < formats.size(); ++i)
        if (formats[i] && *formats[i] != Format::fp64) keep_half(written[i], half, *formats[i]);
    };
  }
  return options;
}

std::string half_text(FormatHalf half, const std::string& wide, const std::string& narrow) {
  return half == FormatHalf::range ? "the range of " + wide + " and the rounding of " + narrow
                                   : "the rounding of " + wide + " and the range of " + narrow;
}

}  // namespace nanquest
