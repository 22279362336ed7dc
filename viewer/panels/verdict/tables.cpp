// What is below the answers: the tables, and how a cell of them is drawn.
#include <algorithm>

#include "imgui.h"
#include "viewer/panels/verdict/drawn.h"
#include "viewer/ui/flow.h"
#include "viewer/ui/marks.h"
#include "viewer/ui/sparkline.h"
#include "viewer/ui/widgets.h"

namespace nanquest::viewer {
namespace {

/// Pixels of a column's widest cell, its title among them, on one line.
float natural_width(const PageTable& table, std::size_t column) {
  float width = ImGui::CalcTextSize(table.columns[column].title.c_str()).x;
  for (const PageTable::Row& row : table.rows) {
    if (column >= row.cells.size()) continue;
    const float mark = column == 0 && row.sign != Sign::none ? ImGui::GetTextLineHeight() * 1.2f : 0;
    width = std::max(width, mark + ImGui::CalcTextSize(row.cells[column].c_str()).x);
  }
  return width;
}

/// Short words and numbers are never broken; longer texts share the rest by their length.
void setup_column(const PageTable& table, std::size_t column) {
  const float em = ImGui::GetFontSize(), width = natural_width(table, column);
  const bool whole = width <= em * 11 && column + 1 < table.columns.size();
  const bool number = width <= em * 5;
  ImGui::TableSetupColumn(
      table.columns[column].title.c_str(),
      whole || number ? ImGuiTableColumnFlags_WidthFixed : ImGuiTableColumnFlags_WidthStretch,
      whole || number ? width : std::min(width, em * 20));
}

/// The series of the layers that are named, a line each, and their words.
void draw_series(Drawn& drawn, const PageTable& table) {
  heading(table.title.c_str());
  const History& history = drawn.state.session.history();
  const float em = ImGui::GetFontSize();
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const std::vector<std::string>& cells = table.rows[i].cells;
    const LayerSeries& named = drawn.shown.page.series[i];
    const std::vector<std::string>& layers = history.layers(named.statistic);
    const auto layer = static_cast<std::size_t>(std::ranges::find(layers, named.layer) - layers.begin());
    ImGui::PushID(static_cast<int>(i));
    const Link place = Link::to_layer(named.layer, named.statistic);
    if (flowing_text({{cells[0], place}}) != nullptr) drawn.state.go(place);
    if (layer < layers.size())
      sparkline(history, history.series(named.statistic, layer), drawn.state.session.selection().step,
                {std::min(ImGui::GetContentRegionAvail().x - em * 10, em * 16), em * 1.6f});
    ImGui::SameLine(0, em * 0.7f);
    ImGui::TextDisabled("first %s, last %s", cells[1].c_str(), cells[2].c_str());
    if (!cells.back().empty()) drawn.text(cells.back());
    ImGui::PopID();
  }
}

/// The runs that were rehearsed, a line each.
void draw_rehearsed(Drawn& drawn, const PageTable& table) {
  heading(table.title.c_str());
  const std::vector<RehearsedCurve>& curves = drawn.state.session.rehearsed();
  const float em = ImGui::GetFontSize();
  for (std::size_t i = 0; i < std::min(table.rows.size(), curves.size()); ++i) {
    const RehearsedCurve& curve = curves[i];
    ImGui::PushID(static_cast<int>(i));
    draw_sign(table.rows[i].sign);
    drawn.text(curve.name);
    if (const Pyramid* losses = curve.losses(); losses != nullptr) {
      sparkline(curve.history, *losses, -1,
                {std::min(ImGui::GetContentRegionAvail().x - em * 10, em * 16), em * 1.4f});
      ImGui::SameLine(0, em * 0.7f);
      ImGui::TextDisabled("first %s, last %s", table.rows[i].cells[1].c_str(),
                          table.rows[i].cells[2].c_str());
    }
    drawn.text(curve.result);
    ImGui::PopID();
  }
}

/// Lines of a program: nothing of them is a link, and their white space stays.
void draw_code(const PageTable& table) {
  heading(table.title.c_str());
  for (const PageTable::Row& row : table.rows) {
    const float em = ImGui::GetFontSize();
    ImGui::PushStyleColor(ImGuiCol_Text,
                          ImGui::GetColorU32(row.here ? ImGuiCol_Text : ImGuiCol_TextDisabled));
    ImGui::SetCursorPosX(ImGui::GetCursorPosX() + em * 3.5f - ImGui::CalcTextSize(row.cells[0].c_str()).x);
    ImGui::TextUnformatted(row.cells[0].c_str());
    ImGui::SameLine(0, em);
    ImGui::TextUnformatted(row.cells[1].c_str());
    ImGui::PopStyleColor();
  }
}

void draw_table(Drawn& drawn, const PageTable& table) {
  if (table.kind == PageTable::Kind::source) return draw_code(table);
  if (table.kind == PageTable::Kind::series) return draw_series(drawn, table);
  if (table.kind == PageTable::Kind::rehearsed) return draw_rehearsed(drawn, table);
  heading(table.title.c_str());
  const auto columns = static_cast<int>(table.columns.size());
  if (!ImGui::BeginTable(table.title.c_str(), columns, ImGuiTableFlags_BordersInnerH)) return;
  for (std::size_t c = 0; c < table.columns.size(); ++c) setup_column(table, c);
  if (columns > 1) ImGui::TableHeadersRow();
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const PageTable::Row& row = table.rows[i];
    ImGui::PushID(static_cast<int>(i));
    ImGui::TableNextRow();
    for (std::size_t c = 0; c < row.cells.size(); ++c) {
      ImGui::TableNextColumn();
      if (c == 0) draw_sign(row.sign);
      const bool measured = table.kind == PageTable::Kind::evidence && c == 0;
      drawn.text(row.cells[c], measured ? drawn.names.culprit() : std::nullopt);
    }
    ImGui::PopID();
  }
  ImGui::EndTable();
}

}  // namespace

void draw_sign(Sign sign) {
  switch (sign) {
    case Sign::none:
      return;
    case Sign::verified:
      return inline_mark(Mark::verified);
    case Sign::finite:
      return inline_mark(Mark::finite);
    case Sign::non_finite:
      return inline_mark(Mark::nan);
    case Sign::failed:
      return inline_mark(Mark::failed);
    case Sign::caution:
      return inline_mark(Mark::spike);
  }
}

void Drawn::text(const std::string& text, const std::optional<Link>& whole) {
  const auto [found, fresh] = shown.spans.try_emplace(text);
  std::vector<Span>& spans = found->second;
  if (fresh) spans = names.linked(text);
  ImGui::PushID(text.c_str());
  if (whole && spans.size() == 1 && !spans.front().link) {
    if (flowing_text({{text, whole}}) != nullptr) state.go(*whole);
  } else if (const Link* clicked = flowing_text(spans)) {
    state.go(*clicked);
  }
  ImGui::PopID();
}

void draw_tables(Drawn& drawn) {
  const std::vector<PageTable>& tables = drawn.shown.tables;
  const bool wide = tables.size() > 1 && ImGui::GetContentRegionAvail().x > ImGui::GetFontSize() * 46;
  std::size_t all = 0, left = 0;
  for (const PageTable& table : tables) all += table.rows.size() + 2;
  if (!wide || !ImGui::BeginTable("details", 2, ImGuiTableFlags_SizingStretchSame)) {
    for (const PageTable& table : tables) draw_table(drawn, table);
    return;
  }
  ImGui::TableNextColumn();
  bool second = false;
  for (const PageTable& table : tables) {
    if (!second && left > 0 && left + table.rows.size() / 2 >= all / 2) {
      second = true;
      ImGui::TableNextColumn();
    }
    draw_table(drawn, table);
    left += table.rows.size() + 2;
  }
  ImGui::EndTable();
}

}  // namespace nanquest::viewer
