#include <algorithm>

#include "imgui.h"
#include "viewer/model/numbers.h"
#include "viewer/model/verdict_page.h"
#include "viewer/ui/style.h"
#include "viewer/ui/ui.h"

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

void fact_row(const VerdictPage& page, const Fact& fact) {
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  ImGui::TextDisabled("%s", fact.label.c_str());
  ImGui::TableNextColumn();
  if (fact.label == "How sure" && page.state == VerdictPage::State::diagnosed)
    confidence_bar(page.confidence);
  if (fact.label == "What to do" && page.fix_verified) inline_mark(Mark::finite);
  if (fact.label == "Proven by" && page.bit_exact) inline_mark(Mark::finite);
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

void wrapped_cell(const std::string& text) {
  ImGui::TableNextColumn();
  ImGui::PushTextWrapPos(0);
  ImGui::TextUnformatted(text.c_str());
  ImGui::PopTextWrapPos();
}

void evidence_table(const VerdictPage& page) {
  heading("Evidence");
  if (!ImGui::BeginTable("evidence", 3, ImGuiTableFlags_BordersInnerH)) return;
  ImGui::TableSetupColumn("Measured", ImGuiTableColumnFlags_WidthStretch, 2.4f);
  ImGui::TableSetupColumn("Value", ImGuiTableColumnFlags_WidthStretch, 1.6f);
  ImGui::TableSetupColumn("Limit", ImGuiTableColumnFlags_WidthStretch, 1.0f);
  ImGui::TableHeadersRow();
  for (const Evidence& e : page.evidence) {
    ImGui::TableNextRow();
    wrapped_cell(e.name);
    wrapped_cell(e.value);
    wrapped_cell(e.limit);
  }
  ImGui::EndTable();
}

void trials_table(const VerdictPage& page) {
  heading("Tried on this step");
  if (!ImGui::BeginTable("trials", 2, ImGuiTableFlags_BordersInnerH)) return;
  ImGui::TableSetupColumn("Change", ImGuiTableColumnFlags_WidthStretch, 2.4f);
  ImGui::TableSetupColumn("Result", ImGuiTableColumnFlags_WidthStretch, 1.4f);
  ImGui::TableHeadersRow();
  for (const Counterfactual& trial : page.trials) {
    ImGui::TableNextRow();
    wrapped_cell((trial.kind == ChangeKind::placebo ? "Placebo: " : "") + trial.change);
    ImGui::TableNextColumn();
    inline_mark(trial.result == TrialResult::finite ? Mark::finite : Mark::nan);
    ImGui::PushTextWrapPos(0);
    ImGui::TextUnformatted(std::string(spoken(trial.result)).c_str());
    ImGui::PopTextWrapPos();
  }
  ImGui::EndTable();
}

void details(const VerdictPage& page) {
  const bool both = !page.evidence.empty() && !page.trials.empty();
  const bool wide = both && ImGui::GetContentRegionAvail().x > ImGui::GetFontSize() * 46;
  if (wide && ImGui::BeginTable("details", 2, ImGuiTableFlags_SizingStretchSame)) {
    ImGui::TableNextColumn();
    evidence_table(page);
    ImGui::TableNextColumn();
    trials_table(page);
    ImGui::EndTable();
  } else {
    if (!page.evidence.empty()) evidence_table(page);
    if (!page.trials.empty()) trials_table(page);
  }
  if (page.not_tested.empty()) return;
  heading("Not tested");
  for (const std::string& text : page.not_tested) ImGui::TextWrapped("%s", text.c_str());
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

}  // namespace

void draw_verdict(UiState& state) {
  const VerdictPage page = verdict_page(state.session);
  const bool alone = state.options.panel == Panel::verdict;
  push_text_size(alone ? 1.8f : 1.25f);
  ImGui::TextWrapped("%s", page.headline.c_str());
  pop_text_size();
  push_text_size(alone ? 1.15f : 1.0f);
  draw_answers(page, state);
  pop_text_size();
}

}  // namespace nanquest::viewer
