#include <sstream>

#include "viewer/model/numbers.h"
#include "viewer/model/session.h"
#include "viewer/panels/records.h"

namespace nanquest::viewer {

Result<std::string> tensor_csv(Session& session) {
  const TensorDetail* detail = session.tensor_detail();
  if (detail == nullptr)
    return Error{session.tensor_error().empty() ? ErrorCode::usage : ErrorCode::bad_file,
                 session.tensor_error().empty() ? "no stored tensor is selected" : session.tensor_error(),
                 ""};
  std::ostringstream out;
  out << "tensor,table,at,value,hex,bits\n";
  const auto line = [&](const std::string& table, const std::string& at, const std::string& value,
                        const std::string& hex = "", const std::string& bits = "") {
    record(out, detail->tensor.path, table, at, value, hex, bits);
  };
  const ScanResult& s = detail->scan;
  line("exponent", "zero", std::to_string(s.zero));
  for (int i = 0; i < kHistogramBins; ++i)
    if (const std::uint64_t n = detail->histogram[static_cast<std::size_t>(i)])
      line("exponent", std::to_string(kHistogramMinExponent + i), std::to_string(n));
  line("exponent", "nan", std::to_string(s.nan));
  line("exponent", "+inf", std::to_string(s.pos_inf));
  line("exponent", "-inf", std::to_string(s.neg_inf));
  if (detail->fits) {
    const int scale = session.selection().what_if.scale;
    for (const Format format : kFitFormats) {
      const std::string table = std::string(info(format).name) + " at 2^" + std::to_string(scale);
      const Fit fit = detail->fits->in(format, scale);
      line(table, "overflow", std::to_string(fit.overflow));
      line(table, "zero", std::to_string(fit.flushed));
      line(table, "subnormal", std::to_string(fit.subnormal));
    }
  }
  if (const ElementPage* page = session.elements(); page != nullptr)
    for (const Element& e : page->elements) line("element", std::to_string(e.index), e.exact, e.hex, e.bits);
  if (const SideBySide* side = session.culprit_side(); side != nullptr) {
    const std::string of = replayed_values_of(session.incident()->doc.culprit.op) + side->name;
    for (const SideBySide::Row& row : side->rows) {
      const std::string at = std::to_string(row.element);
      for (std::size_t run = 0; run < kReplayedRuns.size(); ++run)
        if (side->held[run]) record(out, of, kReplayedRuns[run], at, exact_number(row.values[run]), "", "");
      record(out, of, "difference", at, exact_number(row.difference), "", "");
    }
  }
  return out.str();
}

}  // namespace nanquest::viewer
