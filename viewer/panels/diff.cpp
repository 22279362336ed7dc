#include "viewer/panels/diff.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "imgui.h"
#include "viewer/model/numbers.h"
#include "viewer/ui/marks.h"
#include "viewer/ui/style.h"
#include "viewer/ui/widgets.h"

namespace nanquest::viewer {
namespace {

constexpr float kWide = 70;      ///< ems from which answer and operations stand beside each other
constexpr double kLeast = 1e-8;  ///< distances of a bar: from here to 1, by factors

void text_row(const std::string& label, const std::string& text, bool strong) {
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  ImGui::TextDisabled("%s", label.c_str());
  ImGui::TableNextColumn();
  if (strong) ImGui::PushStyleColor(ImGuiCol_Text, colour().strong);
  ImGui::TextWrapped("%s", text.c_str());
  if (strong) ImGui::PopStyleColor();
}

void draw_answer(const StepDiff& diff) {
  push_text_size(1.25f);
  ImGui::TextWrapped("%s", diff.headline().c_str());
  pop_text_size();
  ImGui::Spacing();
  if (!ImGui::BeginTable("answer", 2, ImGuiTableFlags_SizingFixedFit)) return;
  ImGui::TableSetupColumn("label", ImGuiTableColumnFlags_WidthFixed, ImGui::GetFontSize() * 5.6f);
  ImGui::TableSetupColumn("text", ImGuiTableColumnFlags_WidthStretch);
  text_row("A", diff.a + ", step " + std::to_string(diff.step_a), false);
  text_row("B", diff.b + ", step " + std::to_string(diff.step_b), false);
  for (std::size_t i = 0; i < diff.lines.size(); ++i)
    text_row(diff.lines[i].head, diff.lines[i].text, i == 0);
  ImGui::EndTable();
}

/// The columns that hold words share what those of numbers leave.
void draw_table(const PageTable& table) {
  heading(table.title.c_str());
  constexpr ImGuiTableFlags flags = ImGuiTableFlags_BordersInnerH | ImGuiTableFlags_SizingFixedFit;
  if (!ImGui::BeginTable(table.title.c_str(), static_cast<int>(table.columns.size()), flags)) return;
  std::size_t widest = 0, most = 0;
  for (std::size_t c = 0; c < table.columns.size(); ++c)
    for (const PageTable::Row& row : table.rows)
      if (row.cells[c].size() > most) most = row.cells[c].size(), widest = c;
  for (std::size_t c = 0; c < table.columns.size(); ++c)
    ImGui::TableSetupColumn(table.columns[c].title.c_str(), c == widest ? ImGuiTableColumnFlags_WidthStretch
                                                                        : ImGuiTableColumnFlags_WidthFixed);
  ImGui::TableHeadersRow();
  for (const PageTable::Row& row : table.rows) {
    ImGui::TableNextRow();
    for (std::size_t c = 0; c < row.cells.size(); ++c) {
      ImGui::TableNextColumn();
      if (c == 0 && row.sign != Sign::none) inline_mark(Mark::spike);
      if (c == widest)
        ImGui::TextWrapped("%s", row.cells[c].c_str());
      else
        ImGui::TextUnformatted(row.cells[c].c_str());
    }
  }
  ImGui::EndTable();
}

float place_of(double distance) {
  return static_cast<float>(std::clamp(1 - std::log10(distance) / std::log10(kLeast), 0.0, 1.0));
}

/// A bar as long as A and B are apart, with a tick where a change of the last bit reaches.
void distance_bar(const DiffDistance& distance, bool beyond) {
  const float width = ImGui::GetContentRegionAvail().x, h = ImGui::GetTextLineHeight();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImDrawList& list = *ImGui::GetWindowDrawList();
  if (distance.found > 0)
    list.AddRectFilled({at.x, at.y + h * 0.3f}, {at.x + width * place_of(distance.found), at.y + h * 0.7f},
                       ImGui::GetColorU32(beyond ? colour().orange : colour().sky), 2);
  if (distance.rounding > 0) {
    const float x = at.x + width * place_of(distance.rounding);
    list.AddLine({x, at.y + h * 0.1f}, {x, at.y + h * 0.9f}, ImGui::GetColorU32(colour().text), 1.5f);
  }
  ImGui::Dummy({width, h});
}

}  // namespace

void DiffView::refresh(const StepDiff& diff, std::uint64_t content) {
  if (content == content_ && rows_shown_ == shown_) return;
  scrolls_ = content != content_ || rows_shown_ != shown_;
  content_ = content;
  rows_shown_ = shown_;
  rows_.clear();
  for (std::size_t i = 0; i < diff.operations.size(); ++i) {
    const OpState state = diff.operations[i].state();
    const bool alone = state == OpState::only_a || state == OpState::only_b;
    if (shown_ == Shown::all || (shown_ == Shown::beyond ? state == OpState::beyond : alone))
      rows_.push_back(i);
  }
}

void DiffView::draw_choice(const StepDiff& diff) {
  heading(("Operations, as recorded: " + grouped(rows_.size()) + " of " + grouped(diff.operations.size()))
              .c_str());
  for (const auto& [label, which] : {std::pair{"All", Shown::all},
                                     {"Beyond rounding", Shown::beyond},
                                     {"In one step only", Shown::alone}}) {
    if (which != Shown::all) ImGui::SameLine();
    if (lit_button(label, shown_ == which, /*small=*/true)) shown_ = which;
  }
  ImGui::TextDisabled(
      "bar: how far A and B are apart, 1e-8 to 1; line: how far a change of the last bit reaches");
}

void DiffView::draw_operations(const StepDiff& diff) {
  draw_choice(diff);
  constexpr ImGuiTableFlags flags = ImGuiTableFlags_ScrollY | ImGuiTableFlags_RowBg |
                                    ImGuiTableFlags_Resizable | ImGuiTableFlags_BordersInnerV |
                                    ImGuiTableFlags_NoSavedSettings;
  if (!ImGui::BeginTable("operations", 7, flags)) return;
  const float em = ImGui::GetFontSize();
  ImGui::TableSetupScrollFreeze(0, 1);
  for (const auto& [title, width] : {std::pair{"Op in A", 3.4f}, {"Op in B", 3.4f}})
    ImGui::TableSetupColumn(title, ImGuiTableColumnFlags_WidthFixed, em * width);
  ImGui::TableSetupColumn("Operation", ImGuiTableColumnFlags_WidthStretch, 5);
  ImGui::TableSetupColumn("Module", ImGuiTableColumnFlags_WidthStretch, 3);
  ImGui::TableSetupColumn("Apart", ImGuiTableColumnFlags_WidthFixed, em * 4.6f);
  ImGui::TableSetupColumn("1e-8 to 1", ImGuiTableColumnFlags_WidthFixed, em * 5);
  ImGui::TableSetupColumn("State", ImGuiTableColumnFlags_WidthFixed, em * 8.8f);
  ImGui::TableHeadersRow();
  const std::size_t beyond = diff.first_beyond();
  const auto first = std::ranges::find(rows_, beyond);
  const bool scrolls = std::exchange(scrolls_, false) && first != rows_.end();
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(rows_.size()));
  if (scrolls) clipper.IncludeItemByIndex(static_cast<int>(first - rows_.begin()));
  while (clipper.Step())
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      const std::size_t row = rows_[static_cast<std::size_t>(i)];
      const StepDiff::Operation& op = diff.operations[row];
      const OpState state = op.state();
      ImGui::TableNextRow();
      if (row == beyond) ImGui::TableSetBgColor(ImGuiTableBgTarget_RowBg1, faint(colour().orange, 0.25f));
      for (const auto& number : {op.a, op.b}) {
        ImGui::TableNextColumn();
        if (number) ImGui::Text("%lld", static_cast<long long>(*number));
      }
      ImGui::TableNextColumn();
      clipped_text(op.op, ImGui::GetContentRegionAvail().x);
      ImGui::TableNextColumn();
      clipped_path(op.module.empty() ? "(" + op.phase + ")" : op.module, ImGui::GetContentRegionAvail().x);
      ImGui::TableNextColumn();
      ImGui::TextUnformatted(distance_text(op.distance.found).c_str());
      ImGui::TableNextColumn();
      distance_bar(op.distance, state == OpState::beyond);
      ImGui::TableNextColumn();
      if (state == OpState::beyond) inline_mark(Mark::spike);
      clipped_text(row == beyond ? "first beyond" : state_words(state), ImGui::GetContentRegionAvail().x);
      if (scrolls && row == beyond) ImGui::SetScrollHereY(0.3f);
    }
  ImGui::EndTable();
}

void DiffView::draw(UiState& state) {
  const StepDiff& diff = *state.session.diff();
  refresh(diff, state.session.content());
  const auto answer = [&] {
    draw_answer(diff);
    if (!diff.ends.empty()) draw_table(end_table(diff));
    if (diff.operations.empty() && diff.same_program)
      ImGui::TextDisabled("the file has no list of operations: write it with --json --full");
  };
  if (diff.operations.empty()) return answer();
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const bool wide = room.x > kWide * ImGui::GetFontSize();
  const ImVec2 size = wide ? ImVec2(room.x * 0.42f, 0) : ImVec2(0, room.y * 0.5f);
  if (ImGui::BeginChild("answer and ends", size)) answer();
  ImGui::EndChild();
  if (wide) ImGui::SameLine(0, ImGui::GetFontSize());
  if (ImGui::BeginChild("all operations")) draw_operations(diff);
  ImGui::EndChild();
}

}  // namespace nanquest::viewer
