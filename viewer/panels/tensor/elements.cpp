// The elements one by one: value, hex, bits, and the way to the next bad one.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "viewer/model/numbers.h"
#include "viewer/panels/tensor/parts.h"
#include "viewer/ui/marks.h"
#include "viewer/ui/widgets.h"

namespace nanquest::viewer {
namespace {

Mark mark_of(const Element& e) {
  return e.exact == "inf" ? Mark::pos_inf : e.exact == "-inf" ? Mark::neg_inf : Mark::nan;
}

/// Puts what follows on the same line if there is room.
void beside(const char* label) {
  const float width = ImGui::CalcTextSize(label).x + ImGui::GetFontSize() * 1.5f;
  ImGui::SameLine();
  if (ImGui::GetContentRegionAvail().x < width) ImGui::NewLine();
}

void controls(UiState& state, TensorPanel& panel, const ElementPage& page) {
  Session& session = state.session;
  std::uint64_t wanted = session.shown_element();
  ImGui::SetNextItemWidth(ImGui::GetFontSize() * 6);
  if (ImGui::InputScalar("##element", ImGuiDataType_U64, &wanted, nullptr, nullptr, nullptr,
                         ImGuiInputTextFlags_EnterReturnsTrue))
    session.select_element(std::min(wanted, page.total - 1));
  beside("Previous bad");
  if (ImGui::Button("Previous bad")) step_bad(state, panel, Direction::backward);
  beside("Next bad");
  if (ImGui::Button("Next bad")) step_bad(state, panel, Direction::forward);
  beside("Hex and bits");
  if (lit_button("Hex and bits", panel.bits)) panel.bits = !panel.bits;
}

void element_row(UiState& state, const TensorPanel& panel, const Element& e, bool placed) {
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  const bool shown = e.index == state.session.shown_element();
  const std::string label = grouped(e.index) + "##element";
  if (ImGui::Selectable(label.c_str(), shown, ImGuiSelectableFlags_SpanAllColumns))
    state.session.select_element(e.index);
  if (!state.options.still && ImGui::IsItemHovered())
    ImGui::SetTooltip("%s\n%s\n%s", e.exact.c_str(), e.hex.c_str(), e.bits.c_str());
  if (placed) {
    ImGui::TableNextColumn();
    ImGui::TextUnformatted(e.position.c_str());
  }
  ImGui::TableNextColumn();
  if (!e.finite) inline_mark(mark_of(e));
  ImGui::TextUnformatted(e.value.c_str());
  if (!panel.bits) return;
  for (const std::string& text : {e.hex, e.bits}) {
    ImGui::TableNextColumn();
    ImGui::TextUnformatted(text.c_str());
  }
}

}  // namespace

void step_bad(UiState& state, TensorPanel& panel, Direction direction) {
  state.wanted = Panel::tensor;
  panel.reveal = true;
  // Later: without a loader it is read at once, which replaces the elements that are being drawn.
  state.later.push_back([&state, direction] {
    const auto said = std::make_shared<Result<std::string>>(std::string());
    const auto step = [said, direction](Session& session) {
      *said = session.select_bad(direction);
      return true;
    };
    state.read({"the next bad element", step,
                [&state, said] { state.message = *said ? **said : said->error().text(); }, true});
  });
}

void draw_elements(UiState& state, TensorPanel& panel) {
  const ElementPage* page = state.session.read_elements();
  if (page == nullptr) return;
  heading(("Elements " + grouped(page->elements.front().index) + " to " +
           grouped(page->elements.back().index) + " of " + grouped(page->total))
              .c_str());
  const std::uint64_t shown = state.session.shown_element();
  const std::string place = state.session.selection().tensor + std::to_string(shown);
  if (panel.seen != place && std::exchange(panel.reveal, false)) ImGui::SetScrollHereY(0);
  controls(state, panel, *page);
  const bool placed = !page->elements.front().position.empty();
  constexpr ImGuiTableFlags flags = ImGuiTableFlags_BordersInnerH | ImGuiTableFlags_ScrollX |
                                    ImGuiTableFlags_ScrollY | ImGuiTableFlags_SizingFixedFit;
  const int columns = 2 + (placed ? 1 : 0) + (panel.bits ? 2 : 0);
  if (!ImGui::BeginTable(panel.bits ? "bits" : "values", columns, flags, {0, ImGui::GetFontSize() * 13}))
    return;
  ImGui::TableSetupScrollFreeze(0, 1);
  ImGui::TableSetupColumn("Element");
  if (placed) ImGui::TableSetupColumn("Place");
  ImGui::TableSetupColumn("Value");
  if (panel.bits) {
    ImGui::TableSetupColumn("Hex");
    ImGui::TableSetupColumn(bits_title(state.session.read_detail()->tensor.dtype));
  }
  ImGui::TableHeadersRow();
  const auto row = static_cast<int>(shown - page->elements.front().index);
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(page->elements.size()));
  if (panel.seen != place) clipper.IncludeItemByIndex(row);
  while (clipper.Step())
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      element_row(state, panel, page->elements[static_cast<std::size_t>(i)], placed);
      if (panel.seen != place && i == row) ImGui::SetScrollHereY();
    }
  panel.seen = place;
  ImGui::EndTable();
}

}  // namespace nanquest::viewer
