#include "viewer/model/numbers.h"
#include "viewer/model/session.h"
#include "viewer/panels/lines.h"

namespace nanquest::viewer {

std::string tensor_text(Session& session) {
  const TensorDetail* detail = session.tensor_detail();
  if (detail == nullptr)
    return session.tensor_error().empty() ? "No stored tensor is selected\n" : session.tensor_error() + "\n";
  const ScanResult& s = detail->scan;
  std::string out = fmt::format("{} ({}), {} {}, {}\n", detail->tensor.name, detail->tensor.group,
                                dtype_name(detail->tensor.dtype), shape_text(detail->tensor.shape),
                                bytes_text(detail->tensor.bytes));
  if (detail->partial) put(out, "only the first {} elements were read\n", grouped(s.count));
  put(out, "{:<15}{}\n{:<15}{}\n", "largest |x|", largest_text(s), "smallest |x|>0", smallest_text(s));
  put(out, "{:<15}{}\n{:<15}{}\n", "zeros", grouped(s.zero), "subnormal", grouped(s.subnormal));
  put(out, "{:<15}{}\n", "not finite", not_finite_text(*detail));
  for (const FormatFit& fit : detail->fits)
    put(out, "{:<10} overflow {:<10} flushed to zero {:<10} subnormal {}\n", info(fit.format).name,
        percent_text(fit.overflow, s.count), percent_text(fit.flushed, s.count),
        percent_text(fit.subnormal, s.count));
  for (std::size_t i = 0; i < detail->histogram.size(); ++i)
    if (detail->histogram[i])
      put(out, "2^{:<5}{:>14}\n", kHistogramMinExponent + static_cast<int>(i), grouped(detail->histogram[i]));
  return out;
}

}  // namespace nanquest::viewer
