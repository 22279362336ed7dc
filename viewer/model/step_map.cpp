#include "viewer/model/step_map.h"

#include <algorithm>
#include <cmath>

#include "viewer/model/numbers.h"

namespace nanquest::viewer {
namespace {

/// Counts of what the op made out of finite values.
BadCounts born(const OpenIncident& incident, OpId op) {
  return (get(incident.doc, op).flags & kOpBirth) != 0 ? incident.trace.made(op) : BadCounts{};
}

bool any_inf(const BadCounts& counts) {
  return counts.pos_inf + counts.neg_inf > 0;
}

}  // namespace

double StepMap::place_of(OpId op) const {
  return ops == 0 ? 0 : (static_cast<double>(op.index()) + 0.5) / static_cast<double>(ops);
}

OpId StepMap::op_at(double place) const {
  if (ops == 0) return {};
  const double at = std::floor(std::clamp(place, 0.0, 1.0) * static_cast<double>(ops));
  return OpId{std::min(static_cast<std::size_t>(at), ops - 1)};
}

OpId StepMap::target_at(double place, double reach) const {
  OpId best;
  for (const Marked& marked : marks) {
    const double off = std::abs(place_of(marked.op) - place);
    if (off > reach) continue;
    best = marked.op;
    reach = off;
  }
  return best ? best : op_at(place);
}

std::vector<char> StepMap::bad_parts(std::size_t count) const {
  std::vector<char> parts(count, 0);
  if (count == 0 || ops == 0) return parts;
  for (const OpId op : bad) {
    // An op that is wider than a part fills all that it covers.
    const std::size_t first = op.index() * count / ops, last = ((op.index() + 1) * count - 1) / ops;
    for (std::size_t part = first; part <= std::min(std::max(first, last), count - 1); ++part)
      parts[part] = 1;
  }
  return parts;
}

StepMap step_map(const OpenIncident& incident) {
  StepMap map;
  map.ops = incident.trace.size();
  std::vector<OpId> nan, inf, intended;
  for (const OpId op : incident.trace.ops()) {
    const Phase phase = get(incident.doc, op).phase;
    if (map.phases.empty() || map.phases.back().phase != phase) map.phases.push_back({phase, op, op});
    map.phases.back().last = op;
    if (incident.trace.made(op).total() > 0) map.bad.push_back(op);
    const BadCounts made = born(incident, op);
    if (made.total() > 0 && incident.trace.mark(op) == OpMark::suppressed) {
      intended.push_back(op);
      continue;
    }
    if (made.nan > 0) nan.push_back(op);
    if (any_inf(made)) inf.push_back(op);
  }
  map.marks.reserve(intended.size() + nan.size() + inf.size() + 2);
  for (const OpId op : intended) map.marks.push_back({op, MapMark::intended});
  for (const OpId op : inf) map.marks.push_back({op, MapMark::inf_born});
  for (const OpId op : nan) map.marks.push_back({op, MapMark::nan_born});
  if (const OpId parts = incident.replayed ? incident.replayed->first_divergence() : OpId{}; parts)
    map.marks.push_back({parts, MapMark::divergence});
  const OpId culprit{incident.doc.culprit.op};
  if (culprit && culprit.index() < map.ops) map.marks.push_back({culprit, MapMark::culprit});
  return map;
}

const char* born_words(const OpenIncident& incident, OpId op) {
  const BadCounts made = born(incident, op);
  if (made.nan > 0) return any_inf(made) ? "NaN, Inf" : "NaN";
  return any_inf(made) ? "Inf" : "";
}

std::string born_text(const OpenIncident& incident, const StepMap& map, std::size_t most) {
  std::vector<OpId> ops;
  for (const StepMap::Marked& marked : map.marks)
    if (marked.mark == MapMark::nan_born || marked.mark == MapMark::inf_born) ops.push_back(marked.op);
  std::ranges::sort(ops);
  ops.erase(std::unique(ops.begin(), ops.end()), ops.end());
  if (ops.empty()) return "";
  std::string text = counted(ops.size(), "op") + " made NaN or Inf of finite values: ";
  for (std::size_t i = 0; i < ops.size() && i < most; ++i)
    text += (i ? ", " : "") + std::to_string(ops[i].row()) + " " + incident.trace.line(ops[i]).name + " (" +
            born_words(incident, ops[i]) + ")";
  return ops.size() > most ? text + ", …" : text;
}

}  // namespace nanquest::viewer
