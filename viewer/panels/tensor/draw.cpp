#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "viewer/model/numbers.h"
#include "viewer/model/verdict_page.h"
#include "viewer/panels/reading.h"
#include "viewer/panels/tensor/plots.h"
#include "viewer/panels/tensor/view.h"
#include "viewer/ui/marks.h"
#include "viewer/ui/style.h"
#include "viewer/ui/widgets.h"

namespace nanquest::viewer {
namespace {

void tensor_choice(UiState& state, const OpenIncident& incident) {
  std::string current = "No stored tensor";
  for (const StoredTensor& t : incident.tensors)
    if (t.path == state.session.selection().tensor) current = t.name;
  ImGui::SetNextItemWidth(-1);
  if (!ImGui::BeginCombo("##tensor", current.c_str(), ImGuiComboFlags_HeightLarge)) return;
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(incident.tensors.size()));
  while (clipper.Step())
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      const StoredTensor& t = incident.tensors[static_cast<std::size_t>(i)];
      const std::string label = t.name + "  (" + t.group + ")##" + t.path;
      if (ImGui::Selectable(label.c_str(), t.path == state.session.selection().tensor))
        state.session.select_tensor(t.path);
    }
  ImGui::EndCombo();
}

void numbers(const TensorDetail& d) {
  const ScanResult& s = d.scan;
  ImGui::TextDisabled("%s %s, %s, %s", dtype_short(d.tensor.dtype).c_str(),
                      shape_text(d.tensor.shape).c_str(), bytes_text(d.tensor.bytes).c_str(),
                      d.tensor.group.c_str());
  if (d.partial) ImGui::TextDisabled("only the first %s elements were read", grouped(s.count).c_str());
  ImGui::TextWrapped("largest |x| %s, smallest %s, %s zero, %s subnormal", largest_text(s).c_str(),
                     smallest_text(s).c_str(), grouped(s.zero).c_str(), grouped(s.subnormal).c_str());
  inline_mark(s.nan ? Mark::nan : s.pos_inf ? Mark::pos_inf : s.neg_inf ? Mark::neg_inf : Mark::finite);
  ImGui::TextUnformatted(s.non_finite() > 0 ? not_finite_text(d).c_str()
                         : d.partial        ? "all finite of those that were read"
                                            : "all finite");
}

void fit_table(const TensorDetail& d) {
  if (d.fits.empty() ||
      !ImGui::BeginTable("fits", 4, ImGuiTableFlags_BordersInnerH | ImGuiTableFlags_SizingStretchSame))
    return;
  for (const char* name : {"In format", "overflows", "becomes 0", "subnormal"}) ImGui::TableSetupColumn(name);
  ImGui::TableHeadersRow();
  for (const FormatFit& fit : d.fits) {
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    ImGui::TextUnformatted(std::string(info(fit.format).name).c_str());
    ImGui::TableNextColumn();
    if (fit.overflow) inline_mark(Mark::pos_inf);
    ImGui::TextUnformatted(percent_text(fit.overflow, d.scan.count).c_str());
    ImGui::TableNextColumn();
    ImGui::TextUnformatted(percent_text(fit.flushed, d.scan.count).c_str());
    ImGui::TableNextColumn();
    ImGui::TextUnformatted(percent_text(fit.subnormal, d.scan.count).c_str());
  }
  ImGui::EndTable();
}

void range_line(const char* label, const ValueRange& r) {
  if (!r.known) return;
  std::string text = std::string(label) + " amax " + amax_text(r);
  if (r.has_headroom && std::isfinite(r.headroom)) text += fmt::format(", {:.1f} bits of room", r.headroom);
  if (r.non_finite()) text += ", " + bad_text(r.nan, r.pos_inf, r.neg_inf);
  ImGui::TextWrapped("%s", text.c_str());
}

/// Values that the selected op made lived only during the step: the file has their statistics, not their
/// bytes.
void produced(const UiState& state, const OpenIncident& incident) {
  const std::int32_t op = state.session.selection().op;
  if (op == kNone) return;
  const TraceLine line = incident.trace.line(OpId{op});
  heading(("Op " + std::to_string(op) + ", " + line.name).c_str());
  range_line("reads", line.read);
  range_line("writes", line.written);
  ImGui::PushStyleColor(ImGuiCol_Text, colour().muted);
  ImGui::TextWrapped(
      "What an op makes lives in the step only: the file keeps its statistics, not its bytes.");
  ImGui::PopStyleColor();
}

void plane_choice(std::int64_t& chosen, const TensorSlice& slice) {
  if (slice.planes > 1) {
    int plane = static_cast<int>(slice.plane);
    ImGui::SetNextItemWidth(ImGui::GetFontSize() * 9);
    if (ImGui::SliderInt("plane", &plane, 0, static_cast<int>(slice.planes) - 1)) chosen = plane;
    ImGui::SameLine();
  }
  ImGui::TextDisabled("%lld x %lld%s%s", static_cast<long long>(slice.rows),
                      static_cast<long long>(slice.columns), slice.wrapped ? ", wrapped" : "",
                      slice.partial ? ", cut" : "");
}

/// Has the selected tensor read.
void ask_for_tensor(UiState& state, TensorPanel& panel) {
  if (!state.session.tensor_waits(panel.plane)) return;
  const std::string& path = state.session.selection().tensor;
  panel.wish.ask(state, path + '\n' + std::to_string(panel.plane), path,
                 [plane = panel.plane](Session& session) { (void)session.tensor_slice(plane); });
}

}  // namespace

std::unique_ptr<PanelView> tensor_view() {
  return std::make_unique<TensorPanel>();
}

void TensorPanel::draw(UiState& state) {
  const OpenIncident* incident = state.session.incident();
  if (incident == nullptr) return ImGui::TextWrapped("%s", verdict_page(state.session).headline.c_str());
  tensor_choice(state, *incident);
  if (plane_of != state.session.selection().tensor) plane = 0;
  plane_of = state.session.selection().tensor;
  ask_for_tensor(state, *this);
  const TensorDetail* detail = state.session.read_detail();
  if (detail == nullptr && state.session.tensor_waits(plane)) {
    wish.draw(state);
    return produced(state, *incident);
  }
  if (detail == nullptr) {
    ImGui::TextWrapped("%s", !incident->tensors_error.empty()       ? incident->tensors_error.c_str()
                             : state.session.tensor_error().empty() ? "No stored tensor is selected"
                                                                    : state.session.tensor_error().c_str());
    return produced(state, *incident);
  }
  const float em = ImGui::GetFontSize();
  const bool wide = ImGui::GetContentRegionAvail().x > em * 50;
  if (wide) ImGui::BeginTable("tensor columns", 2, ImGuiTableFlags_SizingStretchSame);
  if (wide) ImGui::TableNextColumn();
  numbers(*detail);
  ImGui::PushID(
      incident->reader.path().c_str());  // a tensor of that name in another incident has other limits
  draw_exponents(*detail, wide ? em * 24 : em * 13);
  ImGui::PopID();
  fit_table(*detail);
  if (wide) ImGui::TableNextColumn();
  if (const TensorSlice* slice = state.session.read_slice(plane); slice != nullptr && !slice->cells.empty()) {
    plane_choice(plane, *slice);
    draw_slice(state, *slice, wide ? em * 26 : em * 14);
  }
  produced(state, *incident);
  if (wide) ImGui::EndTable();
}

}  // namespace nanquest::viewer
