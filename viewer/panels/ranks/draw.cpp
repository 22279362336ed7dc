#include <algorithm>
#include <cmath>
#include <utility>

#include "imgui.h"
#include "viewer/model/rank_grid.h"
#include "viewer/panels/view.h"
#include "viewer/ui/marks.h"
#include "viewer/ui/style.h"
#include "viewer/ui/widgets.h"

namespace nanquest::viewer {
namespace {

/// A cell shows what its rank left: the fuller, the more is recorded. The first rank has the mark of NaN in
/// it.
void draw_cell(ImDrawList& list, ImVec2 at, float side, RankLeft left, bool first, bool chosen) {
  const float r = side * 0.38f;
  const ImVec2 centre{at.x + side / 2, at.y + side / 2};
  const ImVec2 from{centre.x - r, centre.y - r}, to{centre.x + r, centre.y + r};
  const ImU32 ink = ImGui::GetColorU32(colour().sky), muted = ImGui::GetColorU32(colour().muted);
  const float line = std::max(1.0f, side * 0.08f);
  switch (left) {
    case RankLeft::file:
      list.AddRectFilled(from, to, ink);
      break;
    case RankLeft::row:
      list.AddRect(from, to, ink, 0, 0, line);
      break;
    case RankLeft::lost:
      list.AddRect(from, to, muted, 0, 0, line);
      list.AddLine({from.x, to.y}, {to.x, from.y}, muted, line);
      break;
    case RankLeft::nothing:
      list.AddCircleFilled(centre, std::max(1.0f, side * 0.08f), muted);
      break;
  }
  if (first && left == RankLeft::file) list.AddRectFilled(from, to, mark_colour(Mark::nan));
  if (first)
    draw_shape(list, centre, r * 0.7f, Mark::nan,
               left == RankLeft::file ? ImGui::GetColorU32(colour().on_mark) : mark_colour(Mark::nan));
  if (chosen) {
    const float by = line + 1;
    list.AddRect({from.x - by, from.y - by}, {to.x + by, to.y + by}, ImGui::GetColorU32(colour().strong), 0,
                 0, line * 1.5f);
  }
}

/// The meaning of the kinds of cells that appear.
void draw_legend(const RankGrid& grid) {
  const float side = ImGui::GetTextLineHeight();
  const auto one = [&](RankLeft left, bool first, const char* words) {
    const float needed = side + ImGui::CalcTextSize(words).x + ImGui::GetFontSize();
    if (ImGui::GetContentRegionAvail().x < needed) ImGui::NewLine();
    draw_cell(*ImGui::GetWindowDrawList(), ImGui::GetCursorScreenPos(), side, left, first, false);
    ImGui::Dummy({side, side});
    ImGui::SameLine(0, side * 0.2f);
    ImGui::TextDisabled("%s", words);
    ImGui::SameLine(0, ImGui::GetFontSize());
  };
  for (const RankLeft left : {RankLeft::file, RankLeft::row, RankLeft::lost, RankLeft::nothing})
    if (grid.count(left) > 0) one(left, false, words_of(left));
  const auto first = std::ranges::find(grid.cells, true, &RankCell::first);
  if (first != grid.cells.end()) one(first->left, true, "the first");
  ImGui::NewLine();
}

/// Number of ranks per row: a multiple of eight, like machines, if there is room.
int columns_of(float width, float side, std::size_t ranks) {
  const int fit = std::max(1, static_cast<int>(width / side));
  const int eights = fit >= 8 ? fit / 8 * 8 : fit;
  return std::min(eights, static_cast<int>(ranks));
}

struct RanksPanel : PanelView {
  void draw(UiState& state) override;

 private:
  void draw_grid(UiState& state);

  RankGrid grid_;
  PanelPage page_;
  std::uint64_t made_of_ = 0;  ///< Session::content()
  int incident_ = -2;          ///< row that it was made for
};

void RanksPanel::draw_grid(UiState& state) {
  const float side = std::round(ImGui::GetFontSize() * 1.25f);
  // "4,095" at the start of a row is its first rank.
  const float head = ImGui::CalcTextSize(std::to_string(grid_.cells.size()).c_str()).x + ImGui::GetFontSize();
  const float room = ImGui::GetContentRegionAvail().x - head - ImGui::GetStyle().ScrollbarSize;
  const int columns = columns_of(room, side, grid_.cells.size());
  const int ranks = static_cast<int>(grid_.cells.size()), lines = (ranks + columns - 1) / columns;
  const float height =
      std::min(static_cast<float>(lines) * side + 2, ImGui::GetContentRegionAvail().y * 0.6f);
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
  if (ImGui::BeginChild("grid", {0, std::max(height, side * 2)})) {
    ImGuiListClipper clipper;
    clipper.Begin(lines, side);
    while (clipper.Step())
      for (int line = clipper.DisplayStart; line < clipper.DisplayEnd; ++line) {
        const ImVec2 at = ImGui::GetCursorScreenPos();
        ImGui::GetWindowDrawList()->AddText({at.x, at.y + (side - ImGui::GetFontSize()) / 2},
                                            ImGui::GetColorU32(colour().muted),
                                            std::to_string(line * columns).c_str());
        for (int rank = line * columns; rank < std::min(ranks, (line + 1) * columns); ++rank) {
          const RankCell& cell = grid_.cells[static_cast<std::size_t>(rank)];
          ImGui::SetCursorScreenPos({at.x + head + static_cast<float>(rank % columns) * side, at.y});
          const ImVec2 corner = ImGui::GetCursorScreenPos();
          if (ImGui::InvisibleButton(("rank " + std::to_string(rank)).c_str(), {side, side}) &&
              cell.incident >= 0)
            state.select_incident(cell.incident);
          const bool pointed = ImGui::IsItemHovered() || ImGui::IsItemFocused();
          if (ImGui::IsItemHovered())
            ImGui::SetTooltip("%s%s%s", cell.text().c_str(), cell.about.empty() ? "" : "\n",
                              cell.about.c_str());
          const bool chosen = cell.incident >= 0 && cell.incident == state.session.selection().incident;
          draw_cell(*ImGui::GetWindowDrawList(), corner, side, cell.left, cell.first, chosen || pointed);
        }
        ImGui::SetCursorScreenPos({at.x, at.y + side});
        ImGui::Dummy({0, 0});
      }
  }
  ImGui::EndChild();
  ImGui::PopStyleVar();
}

void RanksPanel::draw(UiState& state) {
  const int incident = state.session.selection().incident;
  if (made_of_ != state.session.content() || incident_ != incident) {
    grid_ = rank_grid(state.session);
    page_ = info_of(Panel::ranks).page(state.session, Extent::glance);
    made_of_ = state.session.content();
    incident_ = incident;
  }
  ImGui::TextWrapped("%s", page_.headline.c_str());
  if (grid_.cells.empty()) return;
  for (const Fact& fact : page_.facts) {
    ImGui::TextDisabled("%s", fact.label.c_str());
    ImGui::SameLine(ImGui::GetFontSize() * 4.5f);
    ImGui::TextWrapped("%s", fact.text.c_str());
  }
  draw_legend(grid_);
  draw_grid(state);
  for (const PageTable& table : page_.tables) {
    heading(table.title.c_str());
    if (!ImGui::BeginTable(
            "ranks", static_cast<int>(table.columns.size()),
            ImGuiTableFlags_BordersInnerH | ImGuiTableFlags_SizingStretchProp | ImGuiTableFlags_ScrollY))
      continue;
    ImGui::TableSetupScrollFreeze(0, 1);
    for (const TextColumn& column : table.columns) ImGui::TableSetupColumn(column.title.c_str());
    ImGui::TableHeadersRow();
    for (const PageTable::Row& row : table.rows) {
      ImGui::PushID(row.cells.front().c_str());
      ImGui::TableNextRow();
      ImGui::TableNextColumn();
      const RankCell& cell = grid_.cells[static_cast<std::size_t>(row.id)];
      if (row.sign == Sign::non_finite) inline_mark(Mark::nan);
      if (cell.incident < 0)
        ImGui::TextUnformatted(row.cells.front().c_str());
      else if (ImGui::TextLink(row.cells.front().c_str()))
        state.select_incident(cell.incident);
      for (std::size_t i = 1; i < row.cells.size(); ++i) {
        ImGui::TableNextColumn();
        clipped_text(row.cells[i], ImGui::GetContentRegionAvail().x);
      }
      ImGui::PopID();
    }
    ImGui::EndTable();
  }
}

}  // namespace

std::unique_ptr<PanelView> ranks_view() {
  return std::make_unique<RanksPanel>();
}

}  // namespace nanquest::viewer
