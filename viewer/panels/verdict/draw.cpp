#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "imgui.h"
#include "viewer/panels/reading.h"
#include "viewer/panels/verdict/drawn.h"
#include "viewer/panels/verdict/page.h"
#include "viewer/panels/view.h"
#include "viewer/ui/marks.h"
#include "viewer/ui/style.h"
#include "viewer/ui/widgets.h"

namespace nanquest::viewer {
namespace {

/// The confidence as a bar, with the number beside it.
void confidence_bar(double confidence) {
  const float h = ImGui::GetTextLineHeight(), width = h * 8;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImDrawList& list = *ImGui::GetWindowDrawList();
  list.AddRectFilled({at.x, at.y + h * 0.25f}, {at.x + width, at.y + h * 0.75f},
                     ImGui::GetColorU32(ImGuiCol_Button), 2);
  list.AddRectFilled({at.x, at.y + h * 0.25f},
                     {at.x + width * static_cast<float>(confidence), at.y + h * 0.75f},
                     ImGui::GetColorU32(colour().sky), 2);
  ImGui::Dummy({width, h});
  ImGui::SameLine();
}

void fact_row(Drawn& drawn, const Fact& fact) {
  const VerdictPage& page = drawn.shown.page;
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  ImGui::TextDisabled("%s", fact.label.c_str());
  ImGui::TableNextColumn();
  if (fact.confidence) confidence_bar(page.confidence);
  draw_sign(fact.sign);
  drawn.text(fact.text);
}

void facts_table(Drawn& drawn) {
  const VerdictPage& page = drawn.shown.page;
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

void draw_answers(Drawn& drawn) {
  const VerdictPage& page = drawn.shown.page;
  if (page.cause) {
    chip(std::string(word(*page.cause)).c_str(), cause_colour(*page.cause));
    ImGui::SameLine();
    ImGui::AlignTextToFramePadding();
    clipped_text(std::string(meaning(*page.cause)), ImGui::GetContentRegionAvail().x);
  }
  ImGui::Spacing();
  facts_table(drawn);
  command_line(page, drawn.state);
  draw_replay_now(drawn.state);
  if (page.state == VerdictPage::State::diagnosed) {
    ImGui::Spacing();
    precision_ladder(page);
  }
  draw_tables(drawn);
}

struct VerdictPanel : PanelView {
  void draw(UiState& state) override;

  /// Updates `shown` and `names` to what the session holds now.
  void note(const Session& session);
  std::optional<Shown> shown;
  std::uint64_t shown_of = 0;  ///< Session::content() that it was made of
  std::optional<Names> names;
  std::uint64_t names_of = 0;  ///< Session::reading() that they were made of: one pass over the ops
};

void VerdictPanel::note(const Session& session) {
  if (!names || names_of != session.reading()) names.emplace(session);
  names_of = session.reading();
  if (shown && shown_of == session.content()) return;
  shown_of = session.content();
  const VerdictPage page = verdict_page(session);
  shown = Shown{page, tables_of(session, page), {}};
}

void VerdictPanel::draw(UiState& state) {
  note(state.session);
  Drawn drawn{state, *shown, *names};
  const bool alone = state.options.panel == Panel::verdict;
  push_text_size(alone ? 1.8f : 1.25f);
  drawn.text(shown->page.headline);
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
