#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "replay/html/html.h"
#include "viewer/model/links.h"
#include "viewer/report/report.h"

namespace nanquest::viewer {
namespace {

using html::escaped;

std::string base64(std::string_view bytes) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve(bytes.size() / 3 * 4 + 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t left = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k)
      group = group << 8 | (k < left ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    for (std::size_t k = 0; k < 4; ++k) out += k <= left ? digits[group >> (18 - 6 * k) & 63u] : '=';
  }
  return out;
}

/// The name of a place in the file: "op-55", "layer-grad_norm-head", "step-131".
std::string anchor_of(const Link& link) {
  std::string out = kind_name(link.kind);
  if (link.statistic) out.append("-").append(statistic_table(*link.statistic));
  const bool numbered = link.name.empty() || link.kind == Link::Kind::sample;
  return out + "-" + (numbered ? std::to_string(link.number) : link.name);
}

std::string id_of(Panel panel) {
  return "panel-" + std::string(panel_name(panel));
}

const char* class_of(Sign sign) {
  constexpr const char* names[] = {"", "verified", "finite", "bad", "failed", "caution"};
  return names[static_cast<int>(sign)];
}

/// "right bad", or nothing.
std::string classes(bool right, Sign sign) {
  const std::string mark = class_of(sign), side = right ? "right" : "";
  return side + (mark.empty() || side.empty() ? "" : " ") + mark;
}

/// ` class="bad"`, or nothing.
std::string class_attribute(Sign sign) {
  const std::string mark = class_of(sign);
  return mark.empty() ? "" : " class=\"" + mark + "\"";
}

class Writer {
 public:
  Writer(Session& session, std::span<const ReportPicture> pictures)
      : names_(session), statistic_(session.selection().statistic), pictures_(pictures) {
    for (const PanelInfo& panel : all_panels())
      pages_.emplace_back(&panel, panel.page(session, Extent::whole));
    for (const auto& [info, page] : pages_)
      for (const PageTable& table : page.tables)
        for (const PageTable::Row& row : table.rows)
          if (row.place) places_.insert(anchor_of(*row.place));
  }

  std::string body() {
    for (const auto& [info, page] : pages_) put_panel(*info, page);
    return std::move(out_);
  }

 private:
  /// The target of a link in the file; "" if that isn't in it, such as an op far from the culprit and every
  /// tensor but the selected one.
  std::string place_of(const Link& link) const {
    if (std::string anchor = anchor_of(link); places_.count(anchor) != 0) return anchor;
    if (link.kind == Link::Kind::step) return id_of(panel_of(link.kind));  // the timeline is of all steps
    if (link.kind != Link::Kind::layer || link.statistic) return "";
    // A single layer: its selected statistic, or the first that it has.
    Link with = link;
    with.statistic = statistic_;
    for (int i = -1; i < kStatistics; ++i) {
      if (i >= 0) with.statistic = static_cast<Statistic>(i);
      if (std::string anchor = anchor_of(with); places_.count(anchor) != 0) return anchor;
    }
    return "";
  }

  /// Text with links to what is shown elsewhere in the file.
  std::string text(const std::string& words) const {
    std::string out;
    for (const Span& span : names_.linked(words)) {
      const std::string place = span.link ? place_of(*span.link) : "";
      out += place.empty() ? escaped(span.text)
                           : fmt::format("<a href=\"#{}\">{}</a>", escaped(place), escaped(span.text));
    }
    return out;
  }

  void put_table(const PageTable& table) {
    if (!table.title.empty()) out_ += fmt::format("<h3>{}</h3>\n", escaped(table.title));
    if (table.rows.empty()) return;
    std::vector<html::Cell> cells;
    for (const TextColumn& column : table.columns)
      cells.push_back({escaped(column.title), classes(column.right, Sign::none)});
    html::begin_table(out_, cells);
    for (const PageTable::Row& row : table.rows) {
      const std::string anchor = row.place ? anchor_of(*row.place) : "";
      // Links to a place go to its first row.
      const bool first = !anchor.empty() && named_.insert(anchor).second;
      cells.clear();
      for (std::size_t c = 0; c < table.columns.size(); ++c) {
        const std::string cell = c < row.cells.size() ? row.cells[c] : "";
        // Rows that are a place need no link to themselves.
        if (table.kind == PageTable::Kind::source)
          cells.push_back({escaped(cell), "code"});
        else
          cells.push_back({row.place ? escaped(cell) : text(cell),
                           classes(table.columns[c].right, c == 0 ? row.sign : Sign::none)});
      }
      html::add_row(out_, cells, first ? anchor : "");
    }
    html::end_table(out_);
  }

  void put_picture(const char* title, const ReportPicture& picture) {
    if (!picture.dark.empty())
      out_ += fmt::format(
          "<picture><source media=\"(prefers-color-scheme: dark)\" srcset=\"data:image/png;base64,{}\">",
          base64(picture.dark));
    out_ += fmt::format(
        "<img alt=\"{} as drawn; the numbers are in the tables\" src=\"data:image/png;base64,{}\">{}\n",
        title, base64(picture.png), picture.dark.empty() ? "" : "</picture>");
  }

  void put_panel(const PanelInfo& info, const PanelPage& page) {
    out_ += fmt::format("<section id=\"{}\"><h2>{}</h2>\n<p>{}</p>\n", id_of(info.panel), info.title,
                        text(page.headline));
    if (page.cause)
      out_ += fmt::format("<p><span class=\"cause{}\">{}</span> {}</p>\n",
                          *page.cause == Label::unknown ? " unknown" : "", word(*page.cause),
                          escaped(meaning(*page.cause)));
    if (!page.facts.empty()) {
      out_ += "<dl>\n";
      for (const Fact& fact : page.facts)
        out_ += fmt::format("<dt>{}</dt><dd{}>{}</dd>\n", escaped(fact.label), class_attribute(fact.sign),
                            text(fact.text));
      out_ += "</dl>\n";
    }
    for (const ReportPicture& picture : pictures_)
      if (picture.panel == info.panel) put_picture(info.title, picture);
    for (const PageTable& table : page.tables) put_table(table);
    out_ += "</section>\n";
  }

  Names names_;
  Statistic statistic_;
  std::span<const ReportPicture> pictures_;
  std::vector<std::pair<const PanelInfo*, PanelPage>> pages_;
  std::set<std::string> places_, named_;
  std::string out_;
};

}  // namespace

std::string report_html(Session& session, std::span<const ReportPicture> pictures, const std::string& note) {
  std::string links, note_line;
  for (const PanelInfo& panel : all_panels())
    links += fmt::format("<a href=\"#{}\">{}</a>", id_of(panel.panel), panel.title);
  if (!note.empty()) note_line = fmt::format("<p class=\"caution\">{}</p>\n", escaped(note));
  return html::document(session.title(), links, note_line + Writer(session, pictures).body());
}

}  // namespace nanquest::viewer
