#include "viewer/panels/reading.h"

#include <utility>

#include "imgui.h"
#include "viewer/ui/style.h"
#include "viewer/ui/widgets.h"

namespace nanquest::viewer {

void draw_reading(UiState& state, bool wide) {
  const std::string doing = state.doing();
  if (doing.empty()) return;
  const float em = ImGui::GetFontSize();
  ImGui::TextUnformatted(doing.c_str());
  if (!wide) ImGui::SameLine(0, em * 0.7f);
  if (ImGui::SmallButton("Stop")) state.loader->cancel();
  if (ImGui::IsItemHovered()) ImGui::SetTooltip("What is shown stays (Esc)");
}

void draw_replaying(UiState& state, bool wide) {
  if (!state.replaying.runs()) return;
  if (wide)
    ImGui::TextWrapped("%s", state.replaying.doing().c_str());
  else
    clipped_text(state.replaying.doing(), ImGui::GetFontSize() * 30);
  if (!wide) ImGui::SameLine(0, ImGui::GetFontSize() * 0.7f);
  if (ImGui::SmallButton("Cancel")) state.replaying.cancel();
  if (ImGui::IsItemHovered()) ImGui::SetTooltip("Ends nanquest-replay; what is shown stays");
}

void replay_button(UiState& state, bool small) {
  if (small ? ImGui::SmallButton("Replay now") : ImGui::Button("Replay now"))
    state.replay(ReplayTask::replay);
  if (ImGui::IsItemHovered())
    ImGui::SetTooltip("Runs nanquest-replay: names the cause, tries fixes,\nshows the step in fp32 and fp64");
}

void draw_replay_now(UiState& state) {
  if (state.options.still || !may_replay(state.session)) return;
  const Replaying& replaying = state.replaying;
  const bool here = replaying.is_of(state.session.entry()->files.snapshot);
  if (here && replaying.runs()) return draw_replaying(state, true);
  if (here && replaying.failed()) {
    ImGui::PushStyleColor(ImGuiCol_Text, colour().orange);
    ImGui::TextWrapped("%s", replaying.outcome().c_str());
    ImGui::PopStyleColor();
  }
  if (!replaying.runs() && wants_replay(state.session)) replay_button(state, false);
}

void Wish::ask(UiState& state, const std::string& of, const std::string& what,
               std::function<void(Session&)> read) {
  if (!state.doing().empty()) return;
  const std::string wanted = std::to_string(state.session.reading()) + '\n' + of;
  const std::uint64_t stops = state.loader == nullptr ? 0 : state.loader->stops();
  if (asked_for_ == wanted && stops_ != stops) return;
  asked_for_ = wanted;
  stops_ = stops;
  state.read({what, [read = std::move(read)](Session& session) {
                read(session);
                return true;
              }});
}

void Wish::draw(UiState& state) {
  if (!state.doing().empty()) return draw_reading(state, true);
  ImGui::TextUnformatted("Not read");
  if (ImGui::SmallButton("Read it")) asked_for_.clear();
}

void draw_nothing(UiState& state) {
  if (!state.doing().empty()) return draw_reading(state, true);
  const Session& session = state.session;
  ImGui::TextWrapped("%s", session.nothing_because().empty()
                               ? ("Nothing was read of " + session.path() + "; Ctrl+R reads it").c_str()
                               : session.nothing_because().c_str());
}

}  // namespace nanquest::viewer
