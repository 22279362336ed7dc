#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "replay/verdict/together.h"

namespace nanquest {
namespace {

using TogetherJson = nlohmann::ordered_json;

/// JSON has no NaN and no infinity: they are written as words.
TogetherJson told_number(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "+inf" : "-inf";
}

TogetherJson told_at(const CollectiveAtRank& at) {
  TogetherJson j = {{"rank", at.rank},         {"index", at.index},     {"module", at.module},
                    {"gave_bad", at.gave_bad}, {"got_bad", at.got_bad}, {"follows", word(at.follows)}};
  if (at.follows == Follows::differs)
    j["first_difference"] = {{"element", at.first},
                             {"recorded", told_number(at.recorded)},
                             {"computed", told_number(at.computed)},
                             {"different", at.different},
                             {"elements", at.elements}};
  return j;
}

TogetherJson told_collective(const CollectiveInfo& c) {
  TogetherJson at = TogetherJson::array();
  for (const CollectiveAtRank& one : c.at) at.push_back(told_at(one));
  TogetherJson j = {{"op", c.op},
                    {"group", c.group},
                    {"reduction", c.reduction.empty() ? TogetherJson(nullptr) : TogetherJson(c.reduction)},
                    {"ranks", c.ranks},
                    {"missing", c.missing},
                    {"follows", word(c.follows)},
                    {"at", at}};
  if (c.follows == Follows::within) {
    j["distance"] = told_number(c.distance);
    j["bound"] = told_number(c.bound);
  }
  if (!c.why_not.empty()) j["why_not"] = c.why_not;
  return j;
}

TogetherJson told_first(const RanksVerdict& v) {
  if (!v.first) return nullptr;
  const RankCulprit& first = *v.first;
  return {{"rank", first.rank},
          {"op", first.op.empty() ? TogetherJson(nullptr) : TogetherJson(first.op)},
          {"module", first.module},
          {"index", first.index},
          {"file", first.file},
          {"origin", word(first.origin)},
          {"tensor", first.tensor.empty() ? TogetherJson(nullptr) : TogetherJson(first.tensor)},
          {"value", word(v.value)}};
}

TogetherJson told_replicas(const RanksVerdict& v) {
  if (!v.replicas) return nullptr;
  const ReplicasInfo& r = *v.replicas;
  TogetherJson j = {{"ranks", r.ranks}, {"compared", r.compared}, {"different", r.different}};
  if (r.different > 0)
    j["first"] = {{"tensor", r.tensor}, {"element", r.element}, {"odd", r.odd}, {"known", r.known}};
  return j;
}

TogetherJson told_alone(const RanksVerdict& v) {
  if (!v.alone) return nullptr;
  TogetherJson j = {{"why", word(v.alone->why)}, {"rank", v.alone->rank}};
  if (v.alone->why == Alone::hardware) {
    j["op"] = v.alone->op;
    j["module"] = v.alone->module;
    j["index"] = v.alone->index;
    j["witness"] = v.alone->witness;
  }
  return j;
}

}  // namespace

std::string to_json(const RanksVerdict& v) {
  TogetherJson files = TogetherJson::array(), collectives = TogetherJson::array(),
               path = TogetherJson::array(), shown = TogetherJson::array();
  for (const RankFile& f : v.files)
    files.push_back({{"rank", f.rank},
                     {"file", f.file},
                     {"bit_exact", f.reproduction.bit_exact},
                     {"outputs_compared", f.reproduction.outputs_compared},
                     {"mismatched", f.reproduction.mismatched}});
  for (const CollectiveInfo& c : v.collectives) collectives.push_back(told_collective(c));
  for (const RankHop& hop : v.path)
    path.push_back({{"collective", hop.collective}, {"from", hop.from}, {"to", hop.to}});
  for (const RankShown& s : v.shown)
    shown.push_back({{"rank", s.rank}, {"loss", s.loss}, {"gradients", s.gradients}});
  TogetherJson proof = {{"tried", v.proof.tried}, {"healed", v.proof.healed}, {"change", v.proof.change}};
  if (!v.proof.why_not.empty()) proof["why_not"] = v.proof.why_not;
  const TogetherJson j = {
      {"format", "nanquest.ranks"},
      {"version", kRanksVersion},
      {"step", v.step},
      {"world_size", v.world_size},
      {"files", files},
      {"missing", v.missing},
      {"rows", v.rows},
      {"rows_name", v.rows_name < 0 ? TogetherJson(nullptr) : TogetherJson(v.rows_name)},
      {"writers", v.writers.empty() ? TogetherJson(nullptr) : TogetherJson(v.writers)},
      {"finding", word(v.finding)},
      {"first", told_first(v)},
      {"made_by", v.made_by < 0 ? TogetherJson(nullptr) : TogetherJson(v.made_by)},
      {"came_from", v.came_from.empty() ? TogetherJson(nullptr) : TogetherJson(v.came_from)},
      {"path", path},
      {"shown", shown},
      {"proof", proof},
      {"replicas", told_replicas(v)},
      {"alone", told_alone(v)},
      {"collectives", collectives}};
  return j.dump(2, ' ', false, TogetherJson::error_handler_t::replace) + "\n";
}

}  // namespace nanquest
