#include "viewer/model/numbers.h"
#include "viewer/panels/registry.h"

namespace nanquest::viewer {
namespace {

PageTable fits_of(const TensorDetail& detail) {
  PageTable table{PageTable::Kind::plain,
                  "In other formats",
                  {{"format"}, {"overflow", true}, {"flushed to zero", true}, {"subnormal", true}},
                  {}};
  for (const FormatFit& fit : detail.fits)
    table.rows.push_back(
        {{std::string(info(fit.format).name), percent_text(fit.overflow, detail.scan.count),
          percent_text(fit.flushed, detail.scan.count), percent_text(fit.subnormal, detail.scan.count)}});
  return table;
}

PageTable exponents_of(const TensorDetail& detail) {
  PageTable table{PageTable::Kind::plain, "By exponent", {{"exponent of 2", true}, {"values", true}}, {}};
  for (std::size_t i = 0; i < detail.histogram.size(); ++i)
    if (detail.histogram[i])
      table.rows.push_back(
          {{std::to_string(kHistogramMinExponent + static_cast<int>(i)), grouped(detail.histogram[i])}});
  return table;
}

}  // namespace

PanelPage page_of_tensor(Session& session, Extent) {
  PanelPage page;
  const TensorDetail* detail = session.tensor_detail();
  if (detail == nullptr) {
    page.headline = session.tensor_error().empty() ? "No stored tensor is selected" : session.tensor_error();
    return page;
  }
  const ScanResult& s = detail->scan;
  page.headline = detail->tensor.name + " (" + detail->tensor.group + "), " +
                  std::string(dtype_name(detail->tensor.dtype)) + " " + shape_text(detail->tensor.shape) +
                  ", " + bytes_text(detail->tensor.bytes);
  if (detail->partial)
    page.facts.push_back({"", "only the first " + grouped(s.count) + " elements were read"});
  page.facts.push_back({"largest |x|", largest_text(s)});
  page.facts.push_back({"smallest", smallest_text(s)});
  page.facts.push_back({"zeros", grouped(s.zero)});
  page.facts.push_back({"subnormal", grouped(s.subnormal)});
  page.facts.push_back({"not finite", not_finite_text(*detail)});
  if (!detail->fits.empty()) page.tables.push_back(fits_of(*detail));
  page.tables.push_back(exponents_of(*detail));
  return page;
}

}  // namespace nanquest::viewer
