#include <algorithm>

#include "imgui.h"
#include "viewer/model/numbers.h"
#include "viewer/model/verdict_page.h"
#include "viewer/panels/view.h"
#include "viewer/ui/flow.h"
#include "viewer/ui/style.h"

namespace nanquest::viewer {
namespace {

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

/// The panel while it is drawn: the page, and what its words lead to.
struct Drawn {
  UiState& state;
  const VerdictPage& page;
  const Names& names;

  void text(const std::string& text, const std::optional<Link>& whole = {}) const {
    std::vector<Span> spans = names.linked(text);
    if (whole && spans.size() == 1 && !spans[0].link) spans[0].link = whole;
    ImGui::PushID(text.c_str());
    if (const Link* clicked = flowing_text(spans)) state.go(*clicked);
    ImGui::PopID();
  }
};

void fact_row(const Drawn& drawn, const Fact& fact) {
  const VerdictPage& page = drawn.page;
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  ImGui::TextDisabled("%s", fact.label.c_str());
  ImGui::TableNextColumn();
  if (fact.label == "How sure" && page.state == VerdictPage::State::diagnosed)
    confidence_bar(page.confidence);
  sign(fact.sign);
  drawn.text(fact.text);
}

void facts_table(const Drawn& drawn) {
  const VerdictPage& page = drawn.page;
  if (page.facts.empty() || !ImGui::BeginTable("facts", 2, ImGuiTableFlags_SizingFixedFit)) return;
  ImGui::TableSetupColumn("label", ImGuiTableColumnFlags_WidthFixed, ImGui::GetFontSize() * 5.6f);
  ImGui::TableSetupColumn("text", ImGuiTableColumnFlags_WidthStretch);
  for (const Fact& fact : page.facts) fact_row(drawn, fact);
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
  float width = ImGui::CalcTextSize(table.columns[column].title.c_str()).x;
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
      table.columns[column].title.c_str(),
      whole || number ? ImGuiTableColumnFlags_WidthFixed : ImGuiTableColumnFlags_WidthStretch,
      whole || number ? width : std::min(width, em * 20));
}

void draw_table(const Drawn& drawn, const PageTable& table) {
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
      if (c == 0) sign(row.sign);
      const bool measured = table.kind == PageTable::Kind::evidence && c == 0;
      drawn.text(row.cells[c], measured ? drawn.names.culprit() : std::nullopt);
    }
    ImGui::PopID();
  }
  ImGui::EndTable();
}

/// The tables, in two columns where there is room for it: about as much in each.
void details(const Drawn& drawn) {
  const std::vector<PageTable> tables = verdict_tables(drawn.page);
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

void draw_answers(const Drawn& drawn) {
  const VerdictPage& page = drawn.page;
  if (page.cause) {
    chip(std::string(word(*page.cause)).c_str(), cause_colour(*page.cause));
    ImGui::SameLine();
    ImGui::AlignTextToFramePadding();
    clipped_text(std::string(meaning(*page.cause)), ImGui::GetContentRegionAvail().x);
  }
  ImGui::Spacing();
  facts_table(drawn);
  command_line(page, drawn.state);
  if (page.state != VerdictPage::State::diagnosed) return;
  ImGui::Spacing();
  precision_ladder(page);
  details(drawn);
}

struct VerdictPanel : PanelView {
  void draw(UiState& state) override;

  std::optional<Names> names;
  std::uint64_t names_of = 0;  ///< Session::reading() that they were made of
};

void VerdictPanel::draw(UiState& state) {
  if (!names || names_of != state.session.reading()) names.emplace(state.session);
  names_of = state.session.reading();
  const VerdictPage page = verdict_page(state.session);
  const Drawn drawn{state, page, *names};
  const bool alone = state.options.panel == Panel::verdict;
  push_text_size(alone ? 1.8f : 1.25f);
  drawn.text(page.headline);
  pop_text_size();
  push_text_size(alone ? 1.15f : 1.0f);
  draw_answers(drawn);
  pop_text_size();
}

}  // namespace

std::unique_ptr<PanelView> verdict_view() {
  return std::make_unique<VerdictPanel>();
}

}  // namespace nanquest::viewer
