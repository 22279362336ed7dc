#include "viewer/model/step_diff.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "probe/snapshot/atomic_file.h"
#include "replay/verdict/fields.h"
#include "viewer/model/numbers.h"

namespace nanquest::viewer {
namespace {

constexpr JsonHead kHead = {.format = "nanquest.diff",
                            .name = "comparison",
                            .version = 1,
                            .again = "nanquest diff A B --json --full makes it again"};
constexpr std::size_t kMostDiffBytes = std::size_t{256} << 20;
constexpr std::size_t kShownAround = 6;  ///< operations before and after the first beyond rounding, at a glance

std::string op_number(const std::optional<std::int64_t>& op) {
  return op ? std::to_string(*op) : "";
}

}  // namespace

void describe(auto& file, As<StepDiff::Line> auto& line) {
  file.field("head", line.head);
  file.field("text", line.text);
}

void describe(auto& file, As<StepDiff::Finding> auto& f) {
  file.field("kind", f.kind);
  file.field("op", f.op);
  file.field("module", f.module);
  file.field("phase", f.phase);
  file.field("parameter", f.parameter);
  file.field("op_a", f.op_a);
  file.field("op_b", f.op_b);
  file.field("follows", f.follows);
  file.field("name", f.name);
  file.field("in_a", f.in_a);
  file.field("in_b", f.in_b);
  file.field("setting", f.setting);
  file.field("places", f.places);
  file.field("distance", f.distance.found);
  file.field("rounding", f.distance.rounding);
  file.field("text", f.text);
  file.field("tried", f.tried);
}

void describe(auto& file, As<StepDiff::End> auto& end) {
  file.field("name", end.name);
  file.field("compared", end.compared);
  file.field("differ", end.differ);
  file.field("first", end.first);
  file.field("distance", end.distance.found);
  file.field("rounding", end.distance.rounding);
}

void describe(auto& file, As<StepDiff::Operation> auto& op) {
  file.field("a", op.a);
  file.field("b", op.b);
  file.field("op", op.op);
  file.field("module", op.module);
  file.field("phase", op.phase);
  file.field("distance", op.distance.found);
  file.field("rounding", op.distance.rounding);
  file.field("beyond", op.beyond);
}

void describe(auto& file, As<StepDiff> auto& diff) {
  file.field("a", diff.a);
  file.field("b", diff.b);
  file.field("step_a", diff.step_a);
  file.field("step_b", diff.step_b);
  file.field("alike", diff.alike);
  file.field("same_program", diff.same_program);
  file.field("lines", diff.lines);
  file.field("findings", diff.findings);
  file.field("ends", diff.ends);
  file.field("operations", diff.operations);
}

OpState StepDiff::Operation::state() const {
  if (!b) return OpState::only_a;
  if (!a) return OpState::only_b;
  if (beyond) return OpState::beyond;
  if (std::isnan(distance.found)) return OpState::not_compared;
  return distance.found > 0 ? OpState::rounding : OpState::equal;
}

std::string StepDiff::headline() const {
  if (!same_program) return "A and B are not the same program";
  return alike ? "A and B are equal within rounding" : "A and B differ beyond rounding";
}

std::size_t StepDiff::first_beyond() const {
  return static_cast<std::size_t>(std::ranges::find(operations, true, &Operation::beyond) -
                                  operations.begin());
}

const char* state_words(OpState state) {
  constexpr const char* words[] = {"equal",     "within rounding", "beyond rounding",
                                   "only in A", "only in B",       "not compared"};
  return words[static_cast<int>(state)];
}

std::string distance_text(double distance) {
  return std::isnan(distance) ? "" : short_number(distance);
}

bool is_step_diff(const std::string& path) {
  std::error_code ec;
  if (!std::filesystem::is_regular_file(path, ec)) return false;
  std::ifstream file(path, std::ios::binary);
  std::string begin(64, '\0');
  file.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  return begin.starts_with('{') && begin.find(std::string("\"") + kHead.format + "\"") != std::string::npos;
}

Result<StepDiff> read_step_diff(const std::string& path) {
  const Result<std::string> text = read_whole_file(path, kMostDiffBytes);
  if (!text) return text.error();
  Result<StepDiff> diff = json_value<StepDiff>(kHead, *text);
  if (!diff) return Error{ErrorCode::bad_file, path + ": " + diff.error().message, diff.error().hint};
  return diff;
}

PageTable difference_table(const StepDiff& diff) {
  PageTable table{PageTable::Kind::plain,
                  "Differences, in the order of the step",
                  {{"Kind"},
                   {"Difference"},
                   {"In A"},
                   {"In B"},
                   {"Places", true},
                   {"Apart", true},
                   {"Last bit makes", true},
                   {"Tried"}},
                  {}};
  for (std::size_t i = 0; i < diff.findings.size(); ++i) {
    const StepDiff::Finding& f = diff.findings[i];
    table.rows.push_back({{f.kind, f.text, f.in_a, f.in_b, std::to_string(f.places),
                           distance_text(f.distance.found), distance_text(f.distance.rounding), f.tried},
                          Sign::caution});
    table.rows.back().id = static_cast<std::int64_t>(i);
  }
  return table;
}

PageTable end_table(const StepDiff& diff) {
  PageTable table{PageTable::Kind::plain,
                  "What the step leaves behind, as recorded",
                  {{"Group"},
                   {"Compared", true},
                   {"Differ", true},
                   {"First that differs"},
                   {"Apart", true},
                   {"Last bit makes", true}},
                  {}};
  for (const StepDiff::End& end : diff.ends) {
    const bool differs = end.differ > 0;
    table.rows.push_back({{end.name, std::to_string(end.compared), std::to_string(end.differ), end.first,
                           differs ? distance_text(end.distance.found) : "",
                           differs ? distance_text(end.distance.rounding) : ""},
                          differs ? Sign::caution : Sign::none});
  }
  return table;
}

PageTable operation_table(const StepDiff& diff, std::size_t first, std::size_t end) {
  PageTable table{PageTable::Kind::plain,
                  "Operations, as recorded",
                  {{"Op in A", true},
                   {"Op in B", true},
                   {"Operation"},
                   {"Module"},
                   {"Phase"},
                   {"Apart", true},
                   {"Last bit makes", true},
                   {"State"}},
                  {}};
  if (first > 0 || end < diff.operations.size())
    table.title += ": " + grouped(first) + " to " + grouped(end == 0 ? 0 : end - 1) + " of " +
                   grouped(diff.operations.size());
  const std::size_t beyond = diff.first_beyond();
  for (std::size_t i = first; i < std::min(end, diff.operations.size()); ++i) {
    const StepDiff::Operation& op = diff.operations[i];
    const OpState state = op.state();
    table.rows.push_back({{op_number(op.a), op_number(op.b), op.op, op.module, op.phase,
                           distance_text(op.distance.found), distance_text(op.distance.rounding),
                           std::string(i == beyond ? "the first " : "") + state_words(state)},
                          state == OpState::beyond ? Sign::caution : Sign::none});
    table.rows.back().id = static_cast<std::int64_t>(i);
    table.rows.back().here = i == beyond;
  }
  return table;
}

PanelPage page_of(const StepDiff& diff, bool whole, std::size_t most) {
  PanelPage page{diff.headline(), {}, {}, {}};
  page.facts = {{"A", diff.a + ", step " + std::to_string(diff.step_a)},
                {"B", diff.b + ", step " + std::to_string(diff.step_b)}};
  for (const StepDiff::Line& line : diff.lines) page.facts.push_back({line.head, line.text});
  if (!diff.findings.empty()) page.tables.push_back(difference_table(diff));
  if (!diff.ends.empty()) page.tables.push_back(end_table(diff));
  if (diff.operations.empty()) {
    if (diff.same_program)
      page.facts.push_back({"", "the file has no list of operations: write it with --json --full"});
    return page;
  }
  const std::size_t all = diff.operations.size(), around = whole ? most / 2 : kShownAround,
                    beyond = diff.first_beyond();
  const std::size_t first = all <= 2 * around || beyond <= around ? 0 : beyond == all ? 0 : beyond - around;
  page.tables.push_back(operation_table(diff, first, std::min(all, first + 2 * around)));
  return page;
}

}  // namespace nanquest::viewer
