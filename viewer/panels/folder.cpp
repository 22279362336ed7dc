#include "viewer/panels/folder.h"

#include <algorithm>
#include <utility>

#include "imgui.h"
#include "viewer/model/numbers.h"
#include "viewer/ui/marks.h"
#include "viewer/ui/style.h"
#include "viewer/ui/widgets.h"

namespace nanquest::viewer {
namespace {

constexpr int kColumns = static_cast<int>(kRunColumns.size());
constexpr int kBoxes = 1;  // columns before those

void setup_columns(const RunFolder& folder) {
  const float em = ImGui::GetFontSize(), most[] = {em * 18, em * 16, 0, 0, 0, em * 16, 0};
  const ImGuiStyle& style = ImGui::GetStyle();
  const float box = ImGui::GetTextLineHeight();
  ImGui::TableSetupColumn("##chosen", ImGuiTableColumnFlags_WidthFixed | ImGuiTableColumnFlags_NoSort, box);
  float spare = ImGui::GetContentRegionAvail().x - style.ScrollbarSize - box - style.CellPadding.x * 2;
  std::array<float, kRunColumns.size()> widths{};
  for (std::size_t c = 0; c < widths.size(); ++c)
    widths[c] = ImGui::CalcTextSize(kRunColumns[c]).x + em * 1.5f;
  for (const RunLine& run : folder.runs) {
    const auto cells = cells_of(run);
    for (std::size_t c = 0; c < cells.size(); ++c) {
      const float mark = c == 1 ? em * 1.4f : 0;
      widths[c] = std::max(widths[c], ImGui::CalcTextSize(cells[c].c_str()).x + mark + em * 0.5f);
    }
  }
  // A long status is cut only if the command needs the room.
  const auto capped = [&](std::size_t c) { return most[c] > 0 ? std::min(most[c], widths[c]) : widths[c]; };
  for (std::size_t c = 0; c < widths.size(); ++c) spare -= capped(c) + style.CellPadding.x * 2;
  for (int c = 0; c < kColumns; ++c) {
    const auto i = static_cast<std::size_t>(c);
    const auto column = static_cast<RunColumn>(c);
    const bool down = column == RunColumn::incidents || column == RunColumn::steps;
    ImGuiTableColumnFlags flags =
        column == RunColumn::command ? ImGuiTableColumnFlags_WidthStretch : ImGuiTableColumnFlags_WidthFixed;
    if (down) flags |= ImGuiTableColumnFlags_PreferSortDescending;
    if (column == RunColumn::age) flags |= ImGuiTableColumnFlags_DefaultSort;
    const float more = std::clamp(spare, 0.0f, widths[i] - capped(i)), width = capped(i) + more;
    spare -= more;
    ImGui::TableSetupColumn(kRunColumns[i], flags, column == RunColumn::command ? 1 : width);
  }
}

Mark mark_of_run(const RunLine& run) {
  return run.incidents > 0 ? Mark::nan : run.cause.empty() ? Mark::finite : Mark::spike;
}

}  // namespace

void FolderView::refresh(const RunFolder& folder, std::uint64_t content) {
  std::string key = std::to_string(content) + ' ' + std::to_string(static_cast<int>(by_)) +
                    (descending_ ? " down " : " up ") + words_;
  if (key == rows_of_) return;
  rows_of_ = std::move(key);
  rows_ = folder.rows(words_, by_, descending_);
}

std::vector<std::string> FolderView::chosen_names(const RunFolder& folder) const {
  std::vector<std::string> names;
  for (const std::string& path : chosen_)
    if (const auto run = std::ranges::find(folder.runs, path, &RunLine::path); run != folder.runs.end())
      names.push_back(run->name);
  return names;
}

void FolderView::choose(const RunFolder& folder, const std::vector<std::string>& names) {
  chosen_.clear();
  for (const std::string& name : names)
    if (const auto run = std::ranges::find(folder.runs, name, &RunLine::name); run != folder.runs.end())
      chosen_.push_back(run->path);
}

/// As high as a line of text, so that rows stay as they are.
void FolderView::draw_box(const RunLine& run) {
  const auto at = std::ranges::find(chosen_, run.path);
  bool on = at != chosen_.end();
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, {0, 0});
  ImGui::PushStyleVar(ImGuiStyleVar_FrameBorderSize, 1);
  const bool changed = ImGui::Checkbox(("##" + run.name).c_str(), &on);
  ImGui::PopStyleVar(2);
  if (!changed) return;
  if (on)
    chosen_.push_back(run.path);
  else
    chosen_.erase(at);
}

/// What to do with the chosen runs; without any, what a click does.
void FolderView::draw_choice(UiState& state, const RunFolder& folder) {
  std::erase_if(chosen_, [&](const std::string& path) {
    return std::ranges::find(folder.runs, path, &RunLine::path) == folder.runs.end();
  });
  if (chosen_.empty() && rows_.size() == folder.runs.size())
    return ImGui::TextDisabled("a click opens a run, boxes choose several; Alt+Up comes back");
  if (rows_.size() != folder.runs.size())
    ImGui::TextDisabled("%s of %zu", counted(rows_.size(), "run").c_str(), folder.runs.size());
  if (chosen_.empty()) return;
  ImGui::SameLine();
  ImGui::BeginDisabled(chosen_.size() > kMostRuns);
  if (ImGui::Button(chosen_.size() == 1 ? "Open it" : "Show together")) {
    opened_ = chosen_.front();
    state.later.push_back([&state, all = chosen_] {
      state.open_beside(all.front(), {all.begin() + 1, all.end()});
    });
  }
  ImGui::EndDisabled();
  ImGui::SameLine();
  if (ImGui::Button("Choose none")) chosen_.clear();
  ImGui::SameLine();
  if (chosen_.size() > kMostRuns)
    ImGui::TextDisabled("%s chosen, at most %zu are shown together", counted(chosen_.size(), "run").c_str(),
                        kMostRuns);
  else
    ImGui::TextDisabled("%s chosen", counted(chosen_.size(), "run").c_str());
}

void FolderView::draw_row(UiState& state, const RunLine& run) {
  const auto cells = cells_of(run);
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  draw_box(run);
  ImGui::TableNextColumn();
  const float width = ImGui::GetContentRegionAvail().x;
  if (ImGui::Selectable(cut_in_front(cells[0], width).c_str(), run.path == opened_,
                        ImGuiSelectableFlags_SpanAllColumns)) {
    opened_ = run.path;
    state.later.push_back([&state, path = run.path] { state.open(path); });
  }
  if (ImGui::IsItemHovered() && !state.options.still)
    ImGui::SetTooltip("%s\n%s\n%s", run.path.c_str(), cells[5].c_str(), run.command.c_str());
  for (std::size_t c = 1; c < cells.size(); ++c) {
    ImGui::TableNextColumn();
    const float room = ImGui::GetContentRegionAvail().x, length = ImGui::CalcTextSize(cells[c].c_str()).x;
    if (c == 1) inline_mark(mark_of_run(run));
    if (c == 2 || c == 3) ImGui::SetCursorPosX(ImGui::GetCursorPosX() + std::max(0.0f, room - length));
    clipped_text(cells[c], ImGui::GetContentRegionAvail().x);
  }
}

void FolderView::draw(UiState& state) {
  const RunFolder& folder = *state.session.folder();
  push_text_size(1.25f);
  ImGui::TextUnformatted(folder.headline().c_str());
  pop_text_size();
  if (std::exchange(focus_, false)) ImGui::SetKeyboardFocusHere();
  ImGui::SetNextItemWidth(std::min(ImGui::GetFontSize() * 22, ImGui::GetContentRegionAvail().x * 0.5f));
  const bool enter = ImGui::InputTextWithHint("##runs", "Search names, causes, commands", words_,
                                              sizeof words_, ImGuiInputTextFlags_EnterReturnsTrue);
  refresh(folder, state.session.content());
  ImGui::SameLine();
  draw_choice(state, folder);
  if (enter && rows_.size() == 1) {
    opened_ = folder.runs[rows_.front()].path;
    state.later.push_back([&state, path = opened_] { state.open(path); });
  }
  constexpr ImGuiTableFlags flags = ImGuiTableFlags_ScrollY | ImGuiTableFlags_RowBg |
                                    ImGuiTableFlags_Sortable | ImGuiTableFlags_Resizable |
                                    ImGuiTableFlags_BordersInnerV | ImGuiTableFlags_NoSavedSettings;
  if (!ImGui::BeginTable("runs of the folder", kBoxes + kColumns, flags)) return;
  ImGui::TableSetupScrollFreeze(0, 1);
  setup_columns(folder);
  ImGui::TableHeadersRow();
  if (ImGuiTableSortSpecs* wanted = ImGui::TableGetSortSpecs();
      wanted != nullptr && wanted->SpecsCount > 0 && wanted->SpecsDirty) {
    by_ = static_cast<RunColumn>(wanted->Specs[0].ColumnIndex - kBoxes);
    descending_ = wanted->Specs[0].SortDirection == ImGuiSortDirection_Descending;
    wanted->SpecsDirty = false;
    refresh(folder, state.session.content());
  }
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(rows_.size()));
  while (clipper.Step())
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      ImGui::PushID(i);
      draw_row(state, folder.runs[rows_[static_cast<std::size_t>(i)]]);
      ImGui::PopID();
    }
  ImGui::EndTable();
}

}  // namespace nanquest::viewer
