#include <algorithm>

#include "imgui.h"
#include "viewer/model/numbers.h"
#include "viewer/model/verdict_page.h"
#include "viewer/panels/view.h"
#include "viewer/ui/style.h"

namespace nanquest::viewer {
namespace {

/// A label on a coloured ground.
void chip(const char* text, ImVec4 ground) {
  const float pad = ImGui::GetTextLineHeight() * 0.4f;
  const ImVec2 size = ImGui::CalcTextSize(text), at = ImGui::GetCursorScreenPos();
  ImGui::GetWindowDrawList()->AddRectFilled(at, {at.x + size.x + 2 * pad, at.y + size.y + pad},
                                            ImGui::GetColorU32(ground), 3);
  ImGui::GetWindowDrawList()->AddText({at.x + pad, at.y + pad * 0.5f}, IM_COL32(255, 255, 255, 255), text);
  ImGui::Dummy({size.x + 2 * pad, size.y + pad});
}

/// How sure, as a bar with the number beside it.
void confidence_bar(double confidence) {
  const float h = ImGui::GetTextLineHeight(), width = h * 8;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImDrawList& list = *ImGui::GetWindowDrawList();
  list.AddRectFilled({at.x, at.y + h * 0.25f}, {at.x + width, at.y + h * 0.75f},
                     ImGui::GetColorU32(ImGuiCol_Button), 2);
  list.AddRectFilled({at.x, at.y + h * 0.25f},
                     {at.x + width * static_cast<float>(confidence), at.y + h * 0.75f},
                     ImGui::GetColorU32(colour::sky), 2);
  ImGui::Dummy({width, h});
  ImGui::SameLine();
}

void sign(Sign sign) {
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

void fact_row(const VerdictPage& page, const Fact& fact) {
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  ImGui::TextDisabled("%s", fact.label.c_str());
  ImGui::TableNextColumn();
  if (fact.label == "How sure" && page.state == VerdictPage::State::diagnosed)
    confidence_bar(page.confidence);
  sign(fact.sign);
  ImGui::PushTextWrapPos(0);
  ImGui::TextUnformatted(fact.text.c_str());
  ImGui::PopTextWrapPos();
}

void facts_table(const VerdictPage& page) {
  if (page.facts.empty() || !ImGui::BeginTable("facts", 2, ImGuiTableFlags_SizingFixedFit)) return;
  ImGui::TableSetupColumn("label", ImGuiTableColumnFlags_WidthFixed, ImGui::GetFontSize() * 5.6f);
  ImGui::TableSetupColumn("text", ImGuiTableColumnFlags_WidthStretch);
  for (const Fact& fact : page.facts) fact_row(page, fact);
  ImGui::EndTable();
}

void command_line(const VerdictPage& page, UiState& state) {
  if (page.command.empty()) return;
  ImGui::Spacing();
  ImGui::TextUnformatted("Not replayed yet. Run");
  std::string shown = page.command;
  ImGui::SetNextItemWidth(-ImGui::GetFontSize() * 5);
  ImGui::InputText("##command", shown.data(), shown.size() + 1, ImGuiInputTextFlags_ReadOnly);
  ImGui::SameLine();
  if (ImGui::Button("Copy")) {
    ImGui::SetClipboardText(page.command.c_str());
    state.message = "Command copied";
  }
}

void precision_ladder(const VerdictPage& page) {
  const auto rung = [](const char* name, PrecisionResult result) {
    if (result == PrecisionResult::not_run) return;
    const bool finite = result == PrecisionResult::finite;
    ImGui::SameLine(0, ImGui::GetFontSize());
    inline_mark(finite ? Mark::finite : Mark::nan);
    ImGui::Text("%s %s", name, finite ? "finite" : "non-finite");
  };
  inline_mark(Mark::nan);
  ImGui::TextUnformatted("as recorded");
  rung("in fp32", page.precision.fp32);
  rung("in fp64", page.precision.fp64);
}

/// Pixels of a column's widest cell, its title among them, on one line.
float natural_width(const PageTable& table, std::size_t column) {
  float width = ImGui::CalcTextSize(table.columns[column].c_str()).x;
  for (const PageTable::Row& row : table.rows) {
    if (column >= row.cells.size()) continue;
    const float mark = column == 0 && row.sign != Sign::none ? ImGui::GetTextLineHeight() * 1.2f : 0;
    width = std::max(width, mark + ImGui::CalcTextSize(row.cells[column].c_str()).x);
  }
  return width;
}

/// Short words and numbers are never broken; what is longer shares the rest by its length.
void setup_column(const PageTable& table, std::size_t column) {
  const float em = ImGui::GetFontSize(), width = natural_width(table, column);
  const bool whole = width <= em * 11 && column + 1 < table.columns.size();
  const bool number = width <= em * 5;
  ImGui::TableSetupColumn(
      table.columns[column].c_str(),
      whole || number ? ImGuiTableColumnFlags_WidthFixed : ImGuiTableColumnFlags_WidthStretch,
      whole || number ? width : std::min(width, em * 20));
}

void draw_table(const PageTable& table) {
  heading(table.title.c_str());
  const auto columns = static_cast<int>(table.columns.size());
  if (!ImGui::BeginTable(table.title.c_str(), columns, ImGuiTableFlags_BordersInnerH)) return;
  for (std::size_t c = 0; c < table.columns.size(); ++c) setup_column(table, c);
  if (columns > 1) ImGui::TableHeadersRow();
  for (const PageTable::Row& row : table.rows) {
    ImGui::TableNextRow();
    for (std::size_t c = 0; c < row.cells.size(); ++c) {
      ImGui::TableNextColumn();
      if (c == 0) sign(row.sign);
      ImGui::PushTextWrapPos(0);
      ImGui::TextUnformatted(row.cells[c].c_str());
      ImGui::PopTextWrapPos();
    }
  }
  ImGui::EndTable();
}

/// The tables, in two columns where there is room for it: about as much in each.
void details(const VerdictPage& page) {
  const std::vector<PageTable> tables = verdict_tables(page);
  const bool wide = tables.size() > 1 && ImGui::GetContentRegionAvail().x > ImGui::GetFontSize() * 46;
  std::size_t all = 0, left = 0;
  for (const PageTable& table : tables) all += table.rows.size() + 2;
  if (!wide || !ImGui::BeginTable("details", 2, ImGuiTableFlags_SizingStretchSame)) {
    for (const PageTable& table : tables) draw_table(table);
    return;
  }
  ImGui::TableNextColumn();
  bool second = false;
  for (const PageTable& table : tables) {
    if (!second && left > 0 && left + table.rows.size() / 2 >= all / 2) {
      second = true;
      ImGui::TableNextColumn();
    }
    draw_table(table);
    left += table.rows.size() + 2;
  }
  ImGui::EndTable();
}

void draw_answers(const VerdictPage& page, UiState& state) {
  if (page.cause) {
    chip(std::string(word(*page.cause)).c_str(),
         page.cause == Label::unknown ? ImVec4{0.35f, 0.38f, 0.42f, 1} : colour::vermillion);
    ImGui::SameLine();
    ImGui::AlignTextToFramePadding();
    clipped_text(std::string(meaning(*page.cause)), ImGui::GetContentRegionAvail().x);
  }
  ImGui::Spacing();
  facts_table(page);
  command_line(page, state);
  if (page.state != VerdictPage::State::diagnosed) return;
  ImGui::Spacing();
  precision_ladder(page);
  details(page);
}

struct VerdictPanel : PanelView {
  void draw(UiState& state) override;
};

void VerdictPanel::draw(UiState& state) {
  const VerdictPage page = verdict_page(state.session);
  const bool alone = state.options.panel == Panel::verdict;
  push_text_size(alone ? 1.8f : 1.25f);
  ImGui::TextWrapped("%s", page.headline.c_str());
  pop_text_size();
  push_text_size(alone ? 1.15f : 1.0f);
  draw_answers(page, state);
  pop_text_size();
}

}  // namespace

std::unique_ptr<PanelView> verdict_view() {
  return std::make_unique<VerdictPanel>();
}

}  // namespace nanquest::viewer
