#include "viewer/ui/flow.h"

#include <algorithm>
#include <cfloat>
#include <string>

#include "imgui.h"

namespace nanquest::viewer {
namespace {

/// Pixels of a text; not rounded, so that the widths of words add up to that of their line.
float width_of(const std::string& text) {
  return ImGui::GetFont()->CalcTextSizeA(ImGui::GetFontSize(), FLT_MAX, -1, text.c_str()).x;
}

/// A unit that is never broken: a word, or a link with its spaces.
struct Atom {
  std::string text;
  const Link* link = nullptr;
  bool space = false;  ///< one stands before it
  int lines = 0;       ///< line breaks before it
  float width = 0;
};

/// Cuts text at its spaces and line breaks, links only if they are wider than a line; what follows without a
/// space stays attached.
void add_atoms(const Span& span, float line, std::vector<Atom>& atoms, Atom& next) {
  const Link* link = span.link ? &*span.link : nullptr;
  const auto put = [&](std::string text) {
    next.text = std::move(text);
    next.link = link;
    next.width = width_of(next.text);
    atoms.push_back(std::move(next));
    next = {};
  };
  if (link != nullptr && width_of(span.text) <= line) return put(span.text);
  for (std::size_t at = 0; at < span.text.size();) {
    const char c = span.text[at];
    if (c == ' ' || c == '\n') {
      next.space = next.space || c == ' ';
      next.lines += c == '\n';
      ++at;
      continue;
    }
    const std::size_t end = std::min(span.text.find_first_of(" \n", at), span.text.size());
    put(span.text.substr(at, end - at));
    at = end;
  }
}

/// Pixels of a unit and everything attached to it.
float group_width(const std::vector<Atom>& atoms, std::size_t at) {
  float width = atoms[at].width;
  while (++at < atoms.size() && !atoms[at].space && atoms[at].lines == 0) width += atoms[at].width;
  return width;
}

class Line {
 public:
  Line()
      : left_(ImGui::GetCursorScreenPos().x), x_(left_), right_(left_ + ImGui::GetContentRegionAvail().x) {}
  bool begun() const { return x_ > left_; }
  bool has_room(float width) const { return x_ + width <= right_ + 1; }
  void put(const std::string& text, float width) {
    run_ += text;
    x_ += width;
  }
  bool link(const Atom& atom, int id) {
    flush();
    ImGui::PushID(id);
    const bool clicked = ImGui::TextLink(atom.text.c_str());
    ImGui::PopID();
    ImGui::SameLine(0, 0);
    x_ += atom.width;
    return clicked;
  }
  void end() {
    flush();
    ImGui::NewLine();
    x_ = left_;
  }
  /// A word that is wider than the room: broken where necessary.
  void put_wide(const std::string& text) {
    flush();
    ImGui::PushTextWrapPos(0);
    ImGui::TextUnformatted(text.c_str());
    ImGui::PopTextWrapPos();
    x_ = left_;
  }

 private:
  void flush() {
    if (run_.empty()) return;
    ImGui::TextUnformatted(run_.c_str());
    ImGui::SameLine(0, 0);
    run_.clear();
  }
  float left_, x_, right_;
  std::string run_;
};

}  // namespace

const Link* flowing_text(const std::vector<Span>& spans) {
  if (spans.size() == 1 && !spans.front().link) {
    ImGui::PushTextWrapPos(0);
    ImGui::TextUnformatted(spans.front().text.c_str());
    ImGui::PopTextWrapPos();
    return nullptr;
  }
  std::vector<Atom> atoms;
  Atom next;
  for (const Span& span : spans) add_atoms(span, ImGui::GetContentRegionAvail().x, atoms, next);
  const Link* clicked = nullptr;
  const float space = width_of(" ");
  ImGui::BeginGroup();
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(0, 0));
  Line line;
  for (std::size_t i = 0; i < atoms.size(); ++i) {
    const Atom& atom = atoms[i];
    const float width = group_width(atoms, i), gap = atom.space && line.begun() ? space : 0;
    const bool starts = i == 0 || atom.space || atom.lines > 0;
    for (int n = 0; n < atom.lines; ++n) line.end();
    if (starts && line.begun() && !line.has_room(gap + width)) line.end();
    if (atom.space && line.begun()) line.put(" ", space);
    if (atom.link != nullptr) {
      if (line.link(atom, static_cast<int>(i))) clicked = atom.link;
    } else if (line.begun() || line.has_room(atom.width)) {
      line.put(atom.text, atom.width);
    } else {
      line.put_wide(atom.text);
    }
  }
  if (line.begun()) line.end();
  ImGui::PopStyleVar();
  ImGui::EndGroup();
  return clicked;
}

}  // namespace nanquest::viewer
