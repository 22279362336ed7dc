#include <algorithm>

#include "viewer/model/numbers.h"
#include "viewer/model/verdict_page.h"
#include "viewer/panels/registry.h"

namespace nanquest::viewer {
namespace {

constexpr std::uint64_t kGlanceElements = 8;  // elements before and after the one that is looked at

PageTable fits_of(const TensorDetail& detail, const WhatIf& what) {
  PageTable table{PageTable::Kind::plain,
                  "In other formats" + (what.scale == 0 ? "" : ", times " + scale_text(what.scale)),
                  {{"format"},
                   {"overflow", true},
                   {"flushed to zero", true},
                   {"subnormal", true},
                   {"harmless scales", true}},
                  {}};
  const std::uint64_t count = detail.scan.count;
  for (const Format format : kFitFormats) {
    const Fit fit = detail.fits->in(format, what.scale);
    table.rows.push_back(
        {{std::string(info(format).name), percent_text(fit.overflow, count), percent_text(fit.flushed, count),
          percent_text(fit.subnormal, count), harmless_text(*detail.fits, format)}});
  }
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

PageTable elements_of(const ElementPage& page, std::uint64_t shown, DType dtype, Extent extent) {
  const std::uint64_t around = extent == Extent::glance ? kGlanceElements : kElementPage;
  const bool placed = !page.elements.front().position.empty();
  PageTable table{PageTable::Kind::plain, "", {{"element", true}}, {}};
  if (placed) table.columns.push_back({"place"});
  table.columns.insert(table.columns.end(), {{"value", true}, {"hex"}, {bits_title(dtype)}});
  std::uint64_t last = 0;
  for (const Element& e : page.elements) {
    if (e.index + around < shown || e.index > shown + around) continue;
    if (table.rows.empty()) table.title = "Elements " + grouped(e.index);
    std::vector<std::string> cells = {grouped(e.index) + (e.index == shown ? " >" : "")};
    if (placed) cells.push_back(e.position);
    cells.insert(cells.end(), {e.exact, e.hex, e.bits});
    table.rows.push_back({std::move(cells), e.finite ? Sign::none : Sign::non_finite});
    last = e.index;
  }
  table.title += " to " + grouped(last) + " of " + grouped(page.total);
  return table;
}

std::string cell_of(const SideBySide& side, const SideBySide::Row& row, std::size_t run) {
  return side.held[run] ? short_number(row.values[run]) : "-";
}

/// The culprit's values side by side; and which of them the file holds.
void add_culprit(PanelPage& page, Session& session, Extent extent) {
  const OpenIncident& incident = *session.incident();
  const std::vector<CulpritValues> values = culprit_values(incident);
  const std::string op = "op " + std::to_string(incident.doc.culprit.op);
  if (const std::string missing = missing_text(incident, values); !missing.empty())
    page.facts.push_back({"culprit", "values of the culprit: " + missing});
  const SideBySide* side = session.culprit_side();
  if (side == nullptr) return;
  std::string names;
  for (const CulpritValues& value : values) names += (names.empty() ? "" : ", ") + value.name;
  page.facts.push_back({"culprit", "values of " + op + " that the file holds: " + names + "; " + side->name +
                                       " is shown. " + difference_text(*side)});
  PageTable table{PageTable::Kind::plain,
                  side->name + " of " + op + ", the worst elements first",
                  {{"element", true},
                   {"place"},
                   {"recorded", true},
                   {"in fp32", true},
                   {"in fp64", true},
                   {"difference", true}},
                  {}};
  const std::size_t most = extent == Extent::glance ? 2 * kGlanceElements : kMostRows;
  for (std::size_t i = 0; i < side->rows.size() && i < most; ++i) {
    const SideBySide::Row& row = side->rows[i];
    table.rows.push_back({{grouped(row.element), row.position, cell_of(*side, row, 0), cell_of(*side, row, 1),
                           cell_of(*side, row, 2), row_difference(row)},
                          row.changes ? Sign::non_finite : Sign::none});
  }
  page.tables.push_back(std::move(table));
}

}  // namespace

PanelPage page_of_tensor(Session& session, Extent extent) {
  if (session.incident() == nullptr) return nothing_page(session);
  PanelPage page;
  const TensorDetail* detail = session.tensor_detail();
  if (detail == nullptr) {
    page.headline = session.tensor_error().empty() ? "No stored tensor is selected" : session.tensor_error();
    add_culprit(page, session, extent);
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
  add_culprit(page, session, extent);
  const WhatIf& what = session.selection().what_if;
  if (detail->fits) {
    page.facts.push_back({"what if", what_if_text(*detail->fits, what, s.non_finite())});
    page.tables.push_back(fits_of(*detail, what));
  }
  if (const ElementPage* elements = session.elements(); elements != nullptr)
    page.tables.push_back(elements_of(*elements, session.shown_element(), detail->tensor.dtype, extent));
  page.tables.push_back(exponents_of(*detail));
  return page;
}

}  // namespace nanquest::viewer
