#include <algorithm>
#include <cmath>
#include <utility>

#include "imgui.h"
#include "viewer/model/numbers.h"
#include "viewer/panels/batch/view.h"
#include "viewer/ui/marks.h"
#include "viewer/ui/style.h"
#include "viewer/ui/widgets.h"

namespace nanquest::viewer {
namespace {

/// The picture of a sample, or null.
const Thumbnail* picture_of(const BatchTensor& tensor, std::int64_t sample) {
  const auto at = static_cast<std::size_t>(sample);
  return at < tensor.pictures.size() ? &tensor.pictures[at] : nullptr;
}

/// Pixels, `height` the longer side; those that are not finite in the colour of their mark, with a frame
/// around all of them.
void draw_picture(const Thumbnail& picture, float height) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float side = height / static_cast<float>(std::max(picture.rows, picture.columns));
  const auto corner = [&](int row, int column) {
    return ImVec2{std::floor(at.x + side * static_cast<float>(column)),
                  std::floor(at.y + side * static_cast<float>(row))};
  };
  ImDrawList& list = *ImGui::GetWindowDrawList();
  Extremes bad;
  int top = picture.rows, left = picture.columns, bottom = -1, right = -1;  // of what is not finite
  for (int row = 0; row < picture.rows; ++row)
    for (int column = 0; column < picture.columns; ++column) {
      const Thumbnail::Cell& c =
          picture.cells[static_cast<std::size_t>(row) * static_cast<std::size_t>(picture.columns) +
                        static_cast<std::size_t>(column)];
      list.AddRectFilled(
          corner(row, column), corner(row + 1, column + 1),
          c.bad.non_finite() > 0 ? mark_colour(worst(c.bad)) : IM_COL32(c.red, c.green, c.blue, 255));
      if (c.bad.non_finite() == 0) continue;
      bad.add(c.bad);
      top = std::min(top, row), left = std::min(left, column);
      bottom = std::max(bottom, row), right = std::max(right, column);
    }
  if (bad.non_finite() > 0) {
    const ImVec2 a = corner(top, left), b = corner(bottom + 1, right + 1);
    for (const auto& [by, ink] : {std::pair{4.0f, ImGui::GetColorU32(colour().ground)},
                                  {2.5f, mark_colour(worst(bad))},
                                  {1.0f, ImGui::GetColorU32(colour().ground)}})
      list.AddRect({a.x - by, a.y - by}, {b.x + by, b.y + by}, ink, 0, 0, 1.5f);
  }
  ImGui::Dummy({side * static_cast<float>(picture.columns), side * static_cast<float>(picture.rows)});
}

void not_finite(const Extremes& bad, const std::string& words) {
  if (bad.non_finite() > 0) inline_mark(worst(bad));
  clipped_text(words, ImGui::GetContentRegionAvail().x);
}

void cell(const std::string& text) {
  ImGui::TableNextColumn();
  clipped_text(text, ImGui::GetContentRegionAvail().x);
}

void draw_tensors(UiState& state, const BatchPage& page) {
  constexpr ImGuiTableFlags flags = ImGuiTableFlags_BordersInnerH | ImGuiTableFlags_SizingFixedFit |
                                    ImGuiTableFlags_Resizable | ImGuiTableFlags_NoSavedSettings;
  if (page.tensors.empty() || !ImGui::BeginTable("tensors", 6, flags)) return;
  // A long name takes the space of columns that would be useless when cut.
  float widest = 0;
  for (const TensorWords& t : page.tensors) widest = std::max(widest, ImGui::CalcTextSize(t.name.c_str()).x);
  const float name =
      std::min(widest, std::max(ImGui::GetContentRegionAvail().x * 0.3f, ImGui::GetFontSize() * 5));
  ImGui::TableSetupColumn("Tensor", ImGuiTableColumnFlags_WidthFixed, name);
  for (const char* title : {"Type", "Shape", "Values", "Not finite"}) ImGui::TableSetupColumn(title);
  ImGui::TableSetupColumn("Samples", ImGuiTableColumnFlags_WidthStretch);
  ImGui::TableHeadersRow();
  for (std::size_t i = 0; i < page.tensors.size(); ++i) {
    const TensorWords& t = page.tensors[i];
    ImGui::PushID(static_cast<int>(i));
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    const std::string shown = cut_in_front(t.name, name);
    if (ImGui::TextLink(shown.c_str())) state.go(Link::to_tensor(t.path));
    if (shown != t.name && ImGui::IsItemHovered()) ImGui::SetTooltip("%s", t.name.c_str());
    for (const std::string& text : {t.dtype, t.shape, t.range}) {
      ImGui::TableNextColumn();
      ImGui::TextUnformatted(text.c_str());
    }
    ImGui::TableNextColumn();
    if (t.bad.non_finite() > 0) inline_mark(worst(t.bad));
    ImGui::TextUnformatted(t.not_finite.c_str());
    cell(t.by);
    ImGui::PopID();
  }
  ImGui::EndTable();
}

/// The table of samples, while it is drawn.
struct Samples {
  UiState& state;
  const BatchPage& page;
  const BatchTensor* pictured;  ///< whose pictures stand in the rows; null for none
  float height;                 ///< of a row
};

void sample_row(Samples& drawn, const SampleWords& s) {
  ImGui::PushID(static_cast<int>(s.number));
  ImGui::TableNextRow(0, drawn.height);
  ImGui::TableNextColumn();
  const std::string number = std::to_string(s.number);
  const bool chosen = drawn.state.session.selection().sample == s.number;
  constexpr auto flags = ImGuiSelectableFlags_SpanAllColumns | ImGuiSelectableFlags_AllowOverlap;
  const float inner = drawn.height - 2 * ImGui::GetStyle().CellPadding.y;
  if (ImGui::Selectable(number.c_str(), chosen, flags, {0, inner}))
    drawn.state.session.select_sample(s.number);
  ImGui::TableNextColumn();
  if (s.blamed) chip(blamed_words(true), colour().chip);
  if (drawn.pictured != nullptr) {
    ImGui::TableNextColumn();
    if (const Thumbnail* picture = picture_of(*drawn.pictured, s.number)) draw_picture(*picture, inner);
  }
  ImGui::TableNextColumn();
  clipped_path(s.id, ImGui::GetContentRegionAvail().x);  // mostly a path: file, then where in it
  ImGui::TableNextColumn();
  not_finite(s.bad, s.not_finite);
  cell(s.text.empty() ? s.holds : s.text);
  ImGui::PopID();
}

float row_height(const BatchTensor* pictured) {
  const float text = ImGui::GetTextLineHeight();
  return 2 * ImGui::GetStyle().CellPadding.y + (pictured ? ImGui::GetFontSize() * 3.2f : text * 1.4f);
}

/// Pixels of the widest of such words, of the first samples; at least the title's width.
float widest_of(const std::vector<SampleWords>& samples, std::string SampleWords::*words) {
  constexpr std::size_t kAsked = 256;
  float width = ImGui::GetFontSize() * 1.4f;
  for (std::size_t i = 0; i < std::min(samples.size(), kAsked); ++i)
    width = std::max(width, ImGui::CalcTextSize((samples[i].*words).c_str()).x);
  return width;
}

/// At most `room` pixels, and no more than its rows need.
void draw_samples(BatchPanel& panel, UiState& state, const BatchTensor* pictured, float room) {
  const float row = row_height(pictured), count = static_cast<float>(panel.page.samples.size());
  const float height = std::min(room, row * count + ImGui::GetTextLineHeight() * 1.8f);
  const float em = ImGui::GetFontSize();
  constexpr ImGuiTableFlags flags = ImGuiTableFlags_ScrollY | ImGuiTableFlags_RowBg |
                                    ImGuiTableFlags_Resizable | ImGuiTableFlags_BordersInnerV |
                                    ImGuiTableFlags_NoSavedSettings;
  if (!ImGui::BeginTable(pictured ? "pictures" : "samples", pictured ? 6 : 5, flags, {0, height})) return;
  const auto fixed = [&](const char* title, float width) {
    ImGui::TableSetupColumn(title, ImGuiTableColumnFlags_WidthFixed, width);
  };
  const bool texts = std::ranges::any_of(panel.page.samples, [](const auto& s) { return !s.text.empty(); });
  // Ids and findings get the width that they need, as long as the text has as much.
  const float most = std::max(ImGui::GetContentRegionAvail().x * 0.3f, em * 7.2f);
  fixed("Sample", column_width(std::to_string(panel.page.samples.size()), 3.4f));
  fixed("Verdict", ImGui::CalcTextSize(blamed_words(true)).x + em);
  if (pictured) fixed("Picture", em * 3.2f);
  fixed("Id", std::min(widest_of(panel.page.samples, &SampleWords::id), most));
  fixed("Not finite", std::min(widest_of(panel.page.samples, &SampleWords::not_finite) + em * 1.4f, most));
  ImGui::TableSetupColumn(texts ? "Text" : "Holds", ImGuiTableColumnFlags_WidthStretch);
  ImGui::TableSetupScrollFreeze(0, 1);
  ImGui::TableHeadersRow();
  Samples drawn{state, panel.page, pictured, row};
  if (const std::int64_t sample = state.session.selection().sample; sample != panel.seen_sample) {
    panel.seen_sample = sample;
    if (sample >= 0) ImGui::SetScrollY(drawn.height * std::max(0.0f, static_cast<float>(sample) - 1));
  }
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(panel.page.samples.size()), drawn.height);
  while (clipper.Step())
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i)
      sample_row(drawn, panel.page.samples[static_cast<std::size_t>(i)]);
  ImGui::EndTable();
}

/// All that is known of the sample that is selected.
void draw_chosen(const BatchPanel& panel, UiState& state, const BatchTensor* pictured) {
  const auto at = static_cast<std::size_t>(state.session.selection().sample);
  if (at >= panel.page.samples.size()) return ImGui::TextDisabled("Click a sample to see all of it");
  const SampleWords& s = panel.page.samples[at];
  if (const Thumbnail* picture = pictured ? picture_of(*pictured, s.number) : nullptr) {
    draw_picture(*picture, std::min(ImGui::GetContentRegionAvail().y, ImGui::GetFontSize() * 14) -
                               ImGui::GetStyle().ItemSpacing.y);
    ImGui::SameLine();
  }
  if (ImGui::BeginChild("sample")) {
    if (s.blamed) chip(blamed_words(true), colour().chip);
    if (s.blamed) ImGui::SameLine();
    ImGui::Text("Sample %lld  %s", static_cast<long long>(s.number), s.id.c_str());
    if (!s.not_finite.empty()) ImGui::TextDisabled("not finite");
    if (!s.not_finite.empty()) ImGui::SameLine();
    not_finite(s.bad, s.not_finite);
    ImGui::TextWrapped("%s", s.holds.c_str());
    if (!s.text.empty()) ImGui::TextWrapped("%s", s.text.c_str());
  }
  ImGui::EndChild();
}

}  // namespace

std::unique_ptr<PanelView> batch_view() {
  return std::make_unique<BatchPanel>();
}

std::vector<Action> BatchPanel::actions(UiState& state) {
  Session& session = state.session;
  const std::int64_t count = session.incident() ? sample_count(session.incident()->doc) : 0;
  if (count == 0) return {};
  const auto step = [&session, &state, count](std::int64_t by) {
    const std::int64_t now = session.selection().sample;
    session.select_sample(now < 0 ? 0 : (now + by + count) % count);
    state.wanted = Panel::batch;
  };
  std::vector<Action> out = {{"Data", "Next sample", 0, [step] { step(1); }},
                             {"Data", "Previous sample", 0, [step] { step(-1); }}};
  const std::vector<std::int64_t> blamed =
      session.verdict() ? session.verdict()->poison : std::vector<std::int64_t>();
  if (!blamed.empty())
    out.push_back({"Data", "To the sample to blame", 0, [&session, &state, first = blamed.front()] {
                     session.select_sample(first);
                     state.wanted = Panel::batch;
                   }});
  return out;
}

void BatchPanel::draw(UiState& state) {
  Session& session = state.session;
  if (session.batch_waits()) wish.ask(state, "batch", "the batch", [](Session& s) { (void)s.batch(); });
  if (made_of != session.content() || batch != session.read_batch()) {
    made_of = session.content();
    batch = session.read_batch();
    page = batch_page(session, batch);
    seen_sample = -1;
  }
  ImGui::TextWrapped("%s", page.headline.c_str());
  if (session.batch_waits() && batch == nullptr) wish.draw(state);
  draw_tensors(state, page);
  if (page.samples.empty()) return;
  const BatchTensor* pictured = nullptr;
  if (batch != nullptr)
    for (const BatchTensor& t : batch->tensors)
      if (pictured == nullptr && !t.pictures.empty()) pictured = &t;
  const float line = ImGui::GetTextLineHeightWithSpacing(), room = ImGui::GetContentRegionAvail().y;
  const float chosen = std::min(line * (pictured ? 6.5f : 4.2f), room * 0.45f);
  draw_samples(*this, state, pictured, std::max(room - chosen, line * 4));
  draw_chosen(*this, state, pictured);
}

}  // namespace nanquest::viewer
