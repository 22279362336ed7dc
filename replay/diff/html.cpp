#include "replay/html/html.h"

#include <initializer_list>
#include <string>
#include <vector>

#include "replay/diff/words.h"

namespace nanquest::diff {
namespace {

using html::escaped;

std::vector<html::Cell> cells_of(std::initializer_list<std::string> texts) {
  std::vector<html::Cell> cells;
  for (const std::string& text : texts) cells.push_back({escaped(text)});
  return cells;
}

void start_table(std::string& out, const char* title, std::initializer_list<std::string> columns) {
  out.append("<section><h2>").append(title).append("</h2>\n");
  html::begin_table(out, cells_of(columns));
}

void add_row(std::string& out, std::initializer_list<std::string> texts) {
  html::add_row(out, cells_of(texts));
}

void end_table(std::string& out) {
  html::end_table(out);
  out += "</section>\n";
}

std::string joined(const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& text : texts) out.append(out.empty() ? "" : "\n").append(text);
  return out;
}

std::string op_number(std::int32_t op) {
  return op < 0 ? "" : std::to_string(op);
}

void add_findings(std::string& out, const Report& r) {
  start_table(out, "Differences, in the order of the step",
              {"Kind", "Operation", "Module or parameter", "Phase", "Op in A", "Op in B", "What", "In A",
               "In B", "Places", "Apart", "Last bit", "Tried"});
  for (const Finding& f : r.findings)
    add_row(out, {std::string(word(f.kind)), f.op, f.parameter.empty() ? f.module : f.parameter, f.phase,
                  op_number(f.a), op_number(f.b), number_name(f),
                  f.only_a.empty() ? f.in_a : joined(f.only_a), f.only_b.empty() ? f.in_b : joined(f.only_b),
                  std::to_string(f.places), number(f.distance.found), number(f.distance.rounding), tried(f)});
  end_table(out);
}

}  // namespace

std::string to_html(const Report& r) {
  std::string body = "<section><h2>Answer</h2>\n<dl>\n";
  for (const auto& [name, file] : {std::pair{"A", &r.file_a}, {"B", &r.file_b}})
    body.append("<dt>").append(name).append("</dt><dd>").append(escaped(*file)).append("</dd>\n");
  for (const Line& line : lines_of(r, false))
    body.append("<dt>")
        .append(escaped(line.head))
        .append("</dt><dd>")
        .append(escaped(line.body))
        .append("</dd>\n");
  body += "</dl></section>\n";
  if (!r.findings.empty()) add_findings(body, r);
  if (!r.ends.empty()) {
    start_table(body, "What the step leaves behind",
                {"Group", "Compared", "Differ", "First", "Apart", "Last bit"});
    for (const Group& g : r.ends)
      add_row(body, {g.name, std::to_string(g.compared), std::to_string(g.differ), g.first,
                     g.differ > 0 ? number(g.distance.found) : "",
                     g.differ > 0 ? number(g.distance.rounding) : ""});
    end_table(body);
  }
  if (!r.notes.empty()) {
    start_table(body, "Also", {"Without an effect beyond rounding, or in one of both only"});
    for (const std::string& note : r.notes) add_row(body, {note});
    end_table(body);
  }
  return html::document(r.alike() ? "A and B are alike" : "A and B differ", "", body);
}

}  // namespace nanquest::diff
