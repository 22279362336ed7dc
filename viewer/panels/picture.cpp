#include "viewer/panels/picture.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <system_error>
#include <utility>

#include "imgui_internal.h"
#include "viewer/model/kept.h"
#include "viewer/model/path_words.h"

namespace nanquest::viewer {
namespace {

namespace fs = std::filesystem;

/// Number of frames in which menus and lists close and tabs come to the front.
constexpr int kSettle = 3;

}  // namespace

std::string picture_path(const Session& session, Panel panel, const std::string& folder) {
  std::string name = session.title();
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '.') c = '_';
  if (session.entry() != nullptr) name += "-step" + std::to_string(session.entry()->files.step);
  name.append("-").append(panel_name(panel));
  fs::path path = fs::path(folder) / (name + ".png");
  std::error_code ec;
  for (int n = 2; fs::exists(path, ec); ++n)
    path = fs::path(folder) / (name + "-" + std::to_string(n) + ".png");
  return path.string();
}

void PictureSaver::want(UiState& state, Panel panel, const std::string& path) {
  const std::string chosen = path.empty() ? picture_path(state.session, panel) : path;
  const Status there = folder_is_there(chosen);
  if (const Status may = there ? may_write(state.session, chosen) : there; !may) {
    state.message = may.error().text();
    return;
  }
  panel_ = panel;
  path_ = chosen;
  frames_ = kSettle;
  state.wanted = panel;
}

void PictureSaver::ask(Panel panel) {
  panel_ = panel;
  name_.open();
}

void PictureSaver::draw(UiState& state) {
  frames_ = std::max(0, frames_ - 1);
  if (!name_.is_open()) return;
  std::string path = path_as_typed(name_.text());
  std::vector<Finder::Entry> entries;
  if (!path.empty()) {
    if (!path.ends_with(".png")) path += ".png";
    entries.push_back({"Save as " + path, "", [this, &state, path] { want(state, panel_, path); }});
  }
  name_.draw(entries);
}

std::optional<PictureSaver::Due> PictureSaver::due() {
  if (path_.empty() || frames_ > 0) return std::nullopt;
  const ImGuiWindow* window = ImGui::FindWindowByName(info_of(panel_).title);
  const std::string path = std::exchange(path_, "");
  if (window == nullptr) return std::nullopt;
  return Due{path, window->Pos, {window->Pos.x + window->Size.x, window->Pos.y + window->Size.y}};
}

}  // namespace nanquest::viewer
