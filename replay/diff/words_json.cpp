#include <nlohmann/json.hpp>

#include "replay/diff/words.h"

namespace nanquest::diff {
namespace {

nlohmann::ordered_json json_of(const Finding& f) {
  const auto op_number = [](std::int32_t op) {
    return op < 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(op);
  };
  return {{"kind", std::string(word(f.kind))},
          {"op", f.op},
          {"module", f.module},
          {"phase", f.phase},
          {"parameter", f.parameter},
          {"op_a", op_number(f.a)},
          {"op_b", op_number(f.b)},
          {"name", f.name},
          {"in_a", f.in_a},
          {"in_b", f.in_b},
          {"setting", f.setting},
          {"places", f.places},
          {"follows", op_number(f.follows)},
          {"only_a", f.only_a},
          {"only_b", f.only_b},
          {"distance", f.distance.found},
          {"rounding", f.distance.rounding},
          {"inputs_agree", f.inputs_agree},
          {"shown", f.shown},
          {"widened", f.widened},
          {"in_format", f.in_format},
          {"how", f.how},
          {"text", sentence(f)},
          {"tried", tried(f)}};
}

nlohmann::ordered_json json_of(const std::optional<Runs>& runs) {
  if (!runs) return {};
  nlohmann::ordered_json j = {
      {"rank", runs->rank},
      {"ranks_alike", runs->alike},
      {"ranks_differ", runs->differ},
      {"steps", runs->steps},
      {"differs_before", runs->differs_before.has_value() ? nlohmann::ordered_json(*runs->differs_before)
                                                          : nlohmann::ordered_json()},
      {"parameter", runs->parameter},
      {"buffer", runs->buffer},
      {"optimizer", runs->optimizer},
      {"equal_losses", runs->equal_losses},
      {"loss", nullptr}};
  if (runs->loss_step)
    j["loss"] = {{"step", *runs->loss_step}, {"in_a", runs->loss_a}, {"in_b", runs->loss_b}};
  return j;
}

nlohmann::ordered_json json_of(const std::optional<Ranks>& ranks) {
  if (!ranks) return {};
  return {{"side", ranks->a_is_many ? "A" : "B"}, {"put_together", ranks->many}};
}

nlohmann::ordered_json json_of(const std::optional<Formats>& formats) {
  if (!formats) return {};
  return {{"places", formats->places},
          {"first", formats->first},
          {"in_a", formats->in_a},
          {"in_b", formats->in_b}};
}

nlohmann::ordered_json json_of(const std::optional<InFp64>& wide) {
  if (!wide) return {};
  nlohmann::ordered_json j = {{"alike", wide->alike},
                              {"found_there", wide->hidden},
                              {"not_tried", wide->why_not},
                              {"first", nullptr}};
  if (wide->why_not.empty() && !wide->alike) j["first"] = json_of(wide->where);
  return j;
}

nlohmann::ordered_json json_of(const ComparedOp& op) {
  nlohmann::ordered_json j = {
      {"a", nullptr}, {"b", nullptr}, {"op", op.op}, {"module", op.module}, {"phase", op.phase}};
  if (op.a >= 0) j["a"] = op.a;
  if (op.b >= 0) j["b"] = op.b;
  if (!op.distance) return j;
  j["distance"] = op.distance->found;
  j["rounding"] = op.distance->rounding;
  j["beyond"] = op.beyond;
  return j;
}

}  // namespace

std::string to_json(const Report& r, bool full) {
  nlohmann::ordered_json findings = nlohmann::ordered_json::array(), ends = nlohmann::ordered_json::array();
  for (const Finding& f : r.findings) findings.push_back(json_of(f));
  for (const Group& g : r.ends)
    ends.push_back({{"name", g.name},
                    {"compared", g.compared},
                    {"differ", g.differ},
                    {"first", g.first},
                    {"distance", g.distance.found},
                    {"rounding", g.distance.rounding}});
  nlohmann::ordered_json lines = nlohmann::ordered_json::array();
  for (const Line& line : lines_of(r, /*full=*/true))
    lines.push_back({{"head", line.head}, {"text", line.body}});
  nlohmann::ordered_json j = {{"format", "nanquest.diff"},
                              {"version", 1},
                              {"a", r.file_a},
                              {"b", r.file_b},
                              {"step_a", r.step_a},
                              {"step_b", r.step_b},
                              {"alike", r.alike()},
                              {"same_program", r.same_program},
                              {"ops_a", r.ops_a},
                              {"ops_b", r.ops_b},
                              {"in_common", r.in_common},
                              {"share", r.share},
                              {"equal_pairs", r.equal_pairs},
                              {"findings", findings},
                              {"complete", r.complete},
                              {"ends", ends},
                              {"runs", json_of(r.runs)},
                              {"ranks", json_of(r.ranks)},
                              {"formats", json_of(r.formats)},
                              {"fp64", json_of(r.in_fp64)},
                              {"notes", r.notes},
                              {"lines", lines}};
  if (full) {
    nlohmann::ordered_json& operations = j["operations"] = nlohmann::ordered_json::array();
    for (const ComparedOp& op : r.operations) operations.push_back(json_of(op));
  }
  return j.dump(2) + "\n";
}

}  // namespace nanquest::diff
