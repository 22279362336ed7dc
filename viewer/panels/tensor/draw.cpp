#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "viewer/model/numbers.h"
#include "viewer/panels/nothing.h"
#include "viewer/panels/reading.h"
#include "viewer/panels/tensor/parts.h"
#include "viewer/panels/tensor/plots.h"
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

void range_line(const char* label, const ValueRange& r) {
  if (!r.known) return;
  std::string text = std::string(label) + " max |x| " + amax_text(r);
  if (r.has_headroom && std::isfinite(r.headroom))
    text += fmt::format(", {:.1f} bits of headroom", r.headroom);
  if (r.non_finite()) text += ", " + bad_text(r.nan, r.pos_inf, r.neg_inf);
  ImGui::TextWrapped("%s", text.c_str());
}

/// Values that the selected op made existed only during the step: the file has their statistics, not their
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
      "What an op makes lives in the step only: the file keeps its statistics, not its bytes. Of the culprit "
      "a "
      "replay keeps them.");
  ImGui::PopStyleColor();
}

void plane_choice(std::int64_t& chosen, const TensorSlice& slice) {
  if (slice.planes > 1) {
    int plane = static_cast<int>(slice.plane);
    ImGui::SetNextItemWidth(ImGui::GetFontSize() * 9);
    if (ImGui::SliderInt("plane", &plane, 0, static_cast<int>(slice.planes) - 1)) chosen = plane;
    ImGui::SameLine();
  }
  ImGui::TextDisabled("%lld x %lld%s%s; the brighter, the larger |x|", static_cast<long long>(slice.rows),
                      static_cast<long long>(slice.columns), slice.wrapped ? ", wrapped" : "",
                      slice.partial ? ", cut" : "");
}

/// For another element its plane is shown; the user may then choose another plane. As long as nothing was
/// read, the element is unknown unless it was selected.
void follow_element(const Session& session, const OpenIncident& incident, TensorPanel& panel) {
  const std::string& path = session.selection().tensor;
  if (panel.plane_of != path) {
    panel.plane = 0;
    panel.followed.reset();
  }
  panel.plane_of = path;
  const std::uint64_t shown = session.shown_element();
  const bool known = session.selection().element >= 0 || session.read_detail() != nullptr;
  if (!known || panel.followed == shown) return;
  panel.followed = shown;
  for (const StoredTensor& t : incident.tensors)
    if (t.path == path) panel.plane = plane_holding(t.shape, shown);
}

/// Requests the selected tensor.
void ask_for_tensor(UiState& state, TensorPanel& panel) {
  if (!state.session.tensor_waits(panel.plane) && !state.session.elements_wait()) return;
  const std::string& path = state.session.selection().tensor;
  const std::string place =
      std::to_string(panel.plane) + '\n' + std::to_string(state.session.shown_element() / kElementPage);
  panel.wish.ask(state, path + '\n' + place, path,
                 [plane = panel.plane, chosen = panel.followed.has_value()](Session& session) {
                   const TensorDetail* detail = session.tensor_detail();
                   const bool follows = !chosen && detail != nullptr;
                   (void)session.tensor_slice(
                       follows ? plane_holding(detail->tensor.shape, session.shown_element()) : plane);
                   (void)session.elements();
                 });
}

}  // namespace

std::unique_ptr<PanelView> tensor_view() {
  return std::make_unique<TensorPanel>();
}

std::vector<Action> TensorPanel::actions(UiState& state) {
  Session& session = state.session;
  if (session.incident() == nullptr || !session.incident()->holds(session.selection().tensor)) return {};
  std::vector<Action> out;
  const auto add = [&](const char* name, ImGuiKeyChord chord, std::function<void()> run) {
    out.push_back({"Values", name, chord, std::move(run)});
  };
  add("Next bad element", ImGuiKey_N, [this, &state] { step_bad(state, *this, Direction::forward); });
  add("Previous bad element", ImGuiMod_Shift | ImGuiKey_N,
      [this, &state] { step_bad(state, *this, Direction::backward); });
  add("Hex and bits, or not", ImGuiKey_X, [this] { bits = !bits; });
  add("Copy the element with all digits", ImGuiMod_Shift | ImGuiKey_C, [&state] {
    const std::string text = state.session.element_text();
    if (!text.empty()) ImGui::SetClipboardText(text.c_str());
    state.message = text.empty() ? "No element was read" : "Copied " + text;
  });
  const auto what = [&](const char* name, ImGuiKey key, WhatIf wanted) {
    add(name, key, [&session, wanted] { session.select_what_if(wanted); });
  };
  const WhatIf now = session.selection().what_if;
  what("What if: next format", ImGuiKey_W, next_format(now));
  what("What if: double the scale", ImGuiKey_Period, scaled(now, 1));
  what("What if: halve the scale", ImGuiKey_Comma, scaled(now, -1));
  return out;
}

void TensorPanel::draw(UiState& state) {
  const OpenIncident* incident = state.session.incident();
  if (incident == nullptr) return draw_nothing(state.session);
  tensor_choice(state, *incident);
  follow_element(state.session, *incident, *this);
  ask_for_tensor(state, *this);
  follow_element(state.session, *incident, *this);  // without a loader it was read just now
  const TensorDetail* detail = state.session.read_detail();
  if (detail == nullptr && state.session.tensor_waits(plane)) {
    wish.draw(state);
    produced(state, *incident);
    return draw_culprit(state, *this);
  }
  if (detail == nullptr) {
    ImGui::TextWrapped("%s", !incident->tensors_error.empty()       ? incident->tensors_error.c_str()
                             : state.session.tensor_error().empty() ? "No stored tensor is selected"
                                                                    : state.session.tensor_error().c_str());
    produced(state, *incident);
    return draw_culprit(state, *this);
  }
  const float em = ImGui::GetFontSize();
  const bool wide = ImGui::GetContentRegionAvail().x > em * 50;
  if (wide) ImGui::BeginTable("tensor columns", 2, ImGuiTableFlags_SizingStretchSame);
  if (wide) ImGui::TableNextColumn();
  numbers(*detail);
  ImGui::PushID(
      incident->reader.path().c_str());  // a tensor of that name in another incident has other limits
  draw_exponents(*detail, state.session.selection().what_if.scale, wide ? em * 24 : em * 13);
  ImGui::PopID();
  draw_formats(state, *detail);
  draw_culprit(state, *this);
  if (wide) ImGui::TableNextColumn();
  if (const TensorSlice* slice = state.session.read_slice(plane); slice != nullptr && !slice->cells.empty()) {
    plane_choice(plane, *slice);
    draw_slice(state, *slice, wide ? em * 26 : em * 14);
  }
  draw_elements(state, *this);
  produced(state, *incident);
  if (wide) ImGui::EndTable();
}

}  // namespace nanquest::viewer
