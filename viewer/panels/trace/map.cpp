// The whole step as one line above the list of ops.
#include <algorithm>
#include <cmath>
#include <string>

#include "imgui.h"
#include "viewer/panels/trace/cells.h"
#include "viewer/panels/trace/view.h"
#include "viewer/ui/marks.h"
#include "viewer/ui/style.h"

namespace nanquest::viewer {
namespace {

const char* words_of(MapMark mark) {
  constexpr const char* words[] = {"intended infinities", "made Inf of finite values",
                                   "made NaN of finite values", "first divergence from fp64", "culprit"};
  return words[static_cast<int>(mark)];
}

Mark shape_of(MapMark mark) {
  return mark == MapMark::inf_born ? Mark::pos_inf : mark == MapMark::divergence ? Mark::spike : Mark::nan;
}

struct Canvas {
  ImDrawList& list;
  ImVec2 from, to;
  float width() const { return to.x - from.x; }
  float x_of(double place) const { return from.x + static_cast<float>(place) * width(); }
};

void draw_ground(const Canvas& canvas, TracePanel& view) {
  const StepMap& map = view.map;
  const float ops = static_cast<float>(std::max<std::size_t>(map.ops, 1));
  float drawn = canvas.from.x;  // stretches of less than a pixel are left to the next one
  for (const StepMap::Stretch& stretch : map.phases) {
    const float right = canvas.x_of(static_cast<float>(stretch.last.row() + 1) / ops);
    if (right < drawn + 1) continue;
    const ImVec4 ink = stretch.phase == Phase::forward    ? colour().sky
                       : stretch.phase == Phase::backward ? colour().muted
                                                          : colour().orange;
    canvas.list.AddRectFilled({drawn, canvas.from.y}, {right, canvas.to.y}, faint(ink, 0.22f));
    drawn = right;
  }
  // One part a pixel, made again for another width.
  const auto pixels = static_cast<std::size_t>(std::max(canvas.width(), 1.0f));
  if (view.bad_parts.size() != pixels) view.bad_parts = map.bad_parts(pixels);
  const float middle = canvas.from.y + (canvas.to.y - canvas.from.y) * 0.6f;
  for (std::size_t i = 0; i < pixels;) {
    std::size_t end = i;
    while (end < pixels && view.bad_parts[end] != 0) ++end;
    if (end > i)
      canvas.list.AddRectFilled({canvas.from.x + static_cast<float>(i), middle},
                                {canvas.from.x + static_cast<float>(end), canvas.to.y},
                                faint(colour().pink, 0.7f));
    i = end + 1;
  }
}

/// The rows of the list that are in sight, wherever they stand in the step.
void draw_seen(const Canvas& canvas, const TracePanel& view) {
  if (view.seen_ops.empty() || view.map.ops == 0) return;
  const float least = std::max(1.0f, canvas.width() / static_cast<float>(view.map.ops));
  const ImU32 ink = ImGui::GetColorU32(colour().strong);
  for (const OpId op : view.seen_ops) {
    const float x = canvas.x_of(view.map.place_of(op)) - least / 2;
    canvas.list.AddRectFilled({x, canvas.to.y - 2}, {x + least, canvas.to.y}, ink);
    canvas.list.AddRectFilled({x, canvas.from.y}, {x + least, canvas.from.y + 2}, ink);
  }
}

void draw_marks(const Canvas& canvas, const StepMap& map) {
  const float r = (canvas.to.y - canvas.from.y) * 0.2f,
              y = canvas.from.y + (canvas.to.y - canvas.from.y) * 0.34f;
  float last = -HUGE_VALF;
  const StepMap::Marked* before = nullptr;
  for (const StepMap::Marked& marked : map.marks) {
    const float x = canvas.x_of(map.place_of(marked.op));
    // Marks of one kind that would cover each other are one mark.
    if (before != nullptr && before->mark == marked.mark && x - last < r) continue;
    before = &marked;
    last = x;
    if (marked.mark == MapMark::culprit) {
      canvas.list.AddLine({x, canvas.from.y}, {x, canvas.to.y}, ImGui::GetColorU32(colour().vermillion), 2);
      canvas.list.AddCircleFilled({x, y}, r * 1.7f, ImGui::GetColorU32(colour().vermillion));
      draw_shape(canvas.list, {x, y}, r, Mark::nan, ImGui::GetColorU32(colour().on_chip));
    } else if (marked.mark == MapMark::intended) {
      canvas.list.AddCircle({x, y}, r, ImGui::GetColorU32(colour().muted), 0, 1.5f);
    } else {
      draw_mark(canvas.list, {x, y}, r, shape_of(marked.mark));
    }
  }
}

void tell(const OpenIncident& incident, const StepMap& map, OpId op) {
  std::string text = "op " + std::to_string(op.row()) + "  " + incident.trace.line(op).name + ", " +
                     std::string(phase_name(get(incident.doc, op).phase));
  for (const StepMap::Marked& marked : map.marks)
    if (marked.op == op) text += std::string("\n") + words_of(marked.mark);
  ImGui::SetTooltip("%s", text.c_str());
}

}  // namespace

void draw_step_map(TracePanel& view, UiState& state, const OpenIncident& incident) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const ImVec2 size{std::max(ImGui::GetContentRegionAvail().x, 1.0f),
                    std::round(ImGui::GetTextLineHeight() * 1.3f)};
  const bool clicked = ImGui::InvisibleButton("Step map", size);
  const Canvas canvas{*ImGui::GetWindowDrawList(), at, {at.x + size.x, at.y + size.y}};
  canvas.list.PushClipRect(canvas.from, canvas.to, true);
  draw_ground(canvas, view);
  draw_seen(canvas, view);
  draw_marks(canvas, view.map);
  canvas.list.PopClipRect();
  const double place = static_cast<double>(ImGui::GetIO().MousePos.x - at.x) / static_cast<double>(size.x);
  const OpId target = view.map.target_at(
      place, static_cast<double>(ImGui::GetFontSize()) * 0.4 / static_cast<double>(size.x));
  if (!target) return;
  if (clicked) state.session.select_op(target.row());
  if (!state.options.still && ImGui::IsItemHovered()) tell(incident, view.map, target);
}

}  // namespace nanquest::viewer
