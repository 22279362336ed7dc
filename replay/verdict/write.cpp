#include <cmath>
#include <nlohmann/json.hpp>

#include "replay/verdict/json.h"

namespace nanquest {
namespace {

using Json = nlohmann::ordered_json;

Json text_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

template <class E>
Json word_or_null(const std::optional<E>& value) {
  return value ? Json(word(*value)) : Json(nullptr);
}

Json evidence_json(const Evidence& e) {
  Json j = {{"name", e.name}, {"value", e.value}, {"limit", e.limit}};
  if (!e.series.empty()) {
    Json series = Json::array();
    for (double x : e.series) series.push_back(std::isfinite(x) ? Json(x) : Json(nullptr));
    j["series"] = std::move(series);
    j["steps"] = e.series.size();
  }
  return j;
}

Json counterfactual_json(const Counterfactual& c) {
  return {{"change", c.change},
          {"kind", word(c.kind)},
          {"scope", word(c.scope)},
          {"result", word(c.result)},
          {"steps", c.steps}};
}

Json fix_json(const Fix& f) {
  return {{"change", f.change},
          {"advice", f.advice},
          {"scope", word(f.scope)},
          {"verified", f.verified},
          {"placebo_failed", f.placebo_failed},
          {"minimal", f.minimal}};
}

Json reproduction_json(const Reproduction& r) {
  Json j = {{"bit_exact", r.bit_exact},
            {"basis", word(r.basis)},
            {"outputs_compared", r.outputs_compared},
            {"mismatched", r.mismatched},
            {"opaque_ops", r.opaque_ops},
            {"first_mismatch", r.first_mismatch ? Json(*r.first_mismatch) : Json(nullptr)},
            {"differences", r.differences}};
  if (r.failed_ops > 0) j["failed_ops"] = r.failed_ops;
  if (const auto& e = r.elsewhere) {
    j["agreement"] = word(r.agreement());
    j["elsewhere"] = {{"recorded_on", e->recorded_on},
                      {"replayed_on", e->replayed_on},
                      {"bound", e->bound},
                      {"distance", e->distance},
                      {"outside", e->outside}};
  }
  return j;
}

Json culprit_json(const CulpritInfo& c) {
  Json j = {{"op", text_or_null(c.op)},
            {"index", c.index},
            {"node", text_or_null(c.node)},
            {"module", c.module},
            {"tensor", text_or_null(c.tensor)},
            {"value", word(c.value)},
            {"count", c.count},
            {"first", c.first},
            {"stack", c.stack}};
  if (!c.inside.empty()) j["inside"] = c.inside;
  if (!c.part.empty()) j["part"] = c.part;
  if (!c.pass.empty()) j["pass"] = c.pass;
  return j;
}

Json blamed_json(const Blamed& b) {
  return {{"op", text_or_null(b.op)},
          {"index", b.index},
          {"module", b.module},
          {"phase", word_or_null(b.phase)},
          {"tensor", text_or_null(b.tensor)}};
}

Json blame_json(const BlameInfo& b) {
  Json set = Json::array(), intended = Json::array(), assumed = Json::array();
  for (const Blamed& one : b.set) set.push_back(blamed_json(one));
  for (const Blamed& one : b.intended) intended.push_back(blamed_json(one));
  for (const Blamed& one : b.assumed) assumed.push_back(blamed_json(one));
  return {{"tried", b.tried}, {"set", set}, {"intended", intended}, {"assumed", assumed}, {"runs", b.runs}};
}

Json claim_json(const Claim& c) {
  return {{"cause", word(c.cause)}, {"for", c.facts_for}, {"against", c.facts_against}};
}

Json root_json(const RootCause& r) {
  return {{"cause", word(r.cause)}, {"change", r.change},           {"steps", r.steps},
          {"scope", word(r.scope)}, {"verified", r.verified},       {"cured", r.cured},
          {"tried", r.tried},       {"explanation", r.explanation}, {"file", r.file}};
}

Json unseen_json(const Unseen& u) {
  Json names = Json::array();
  for (const auto& [op, count] : u.names) names.push_back({{"op", op}, {"count", count}});
  return {{"ops", u.ops}, {"names", names}, {"loss", u.loss}, {"gradients", u.gradients}};
}

Json rank_culprit_json(const RankCulprit& first) {
  Json j = {{"rank", first.rank},
            {"op", text_or_null(first.op)},
            {"module", first.module},
            {"index", first.index},
            {"file", first.file}};
  if (first.origin != Origin::op) {
    j["origin"] = word(first.origin);
    j["tensor"] = first.tensor;
  }
  if (!first.part.empty()) j["part"] = first.part;
  if (!first.pass.empty()) j["pass"] = first.pass;
  if (first.step >= 0) j["step"] = first.step;
  return j;
}

Json ranks_json(const Ranks& r) {
  Json arrived = nullptr, files = Json::object();
  if (!r.arrived_by.empty()) arrived = {{"op", r.arrived_by}, {"index", r.arrived_index}};
  for (const auto& [rank, file] : r.files) files[std::to_string(rank)] = file;
  Json j = {{"world_size", r.world_size},
            {"local", r.local},
            {"arrived_by", arrived},
            {"first", r.first ? rank_culprit_json(*r.first) : Json(nullptr)},
            {"files", files},
            {"missing", r.missing},
            {"text", r.text}};
  if (!r.rows.empty()) j["rows"] = r.rows;
  return j;
}

Json json_of(const Verdict& v) {
  Json evidence = Json::array(), counterfactuals = Json::array(), claims = Json::array();
  for (const Claim& c : v.claims) claims.push_back(claim_json(c));
  for (const Evidence& e : v.evidence) evidence.push_back(evidence_json(e));
  for (const Counterfactual& c : v.counterfactuals) counterfactuals.push_back(counterfactual_json(c));
  Json j = {{"format", "nanquest.verdict"},
            {"version", kVerdictVersion},
            {"snapshot", v.snapshot},
            {"step", v.step},
            {"rank", v.rank},
            {"found", v.found},
            {"reproduction", reproduction_json(v.reproduction)},
            {"phase", word_or_null(v.phase)},
            {"culprit", v.found ? culprit_json(v.culprit) : Json(nullptr)},
            {"origin", v.found ? Json(word(v.origin)) : Json(nullptr)},
            {"cause", v.found ? Json(word(v.cause)) : Json(nullptr)},
            {"claims", claims},
            {"blame", blame_json(v.blame)},
            {"root", v.root ? root_json(*v.root) : Json(nullptr)},
            {"confidence", std::round(v.confidence * 100) / 100},
            {"explanation", v.explanation},
            {"precision",
             {{"fp32", word(v.precision.fp32)},
              {"fp64", word(v.precision.fp64)},
              {"verdict", word_or_null(v.precision.verdict)}}},
            {"evidence", evidence},
            {"counterfactuals", counterfactuals},
            {"fix", v.fix ? fix_json(*v.fix) : Json(nullptr)},
            {"advice", v.advice},
            {"source", v.source},
            {"samples", {{"poison", v.poison}, {"batch", v.batch}, {"poison_ids", v.poison_ids}}},
            {"not_tested", v.not_tested}};
  if (v.unseen.any()) j["unseen"] = unseen_json(v.unseen);
  if (v.ranks) j["ranks"] = ranks_json(*v.ranks);
  return j;
}

/// Sample ids and paths may hold any bytes; a report must not fail on them.
std::string dumped(const Json& j, int indent) {
  return j.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string to_json(const Verdict& verdict) {
  return dumped(json_of(verdict), 2) + "\n";
}

std::vector<Difference> differences(const Verdict& first, const Verdict& second) {
  const Json a = json_of(first).flatten(), b = json_of(second).flatten();
  std::vector<Difference> found;
  for (const auto& [field, value] : a.items()) {
    const auto other = b.find(field);
    if (other == b.end())
      found.push_back({field, dumped(value, -1), ""});
    else if (*other != value)
      found.push_back({field, dumped(value, -1), dumped(*other, -1)});
  }
  for (const auto& [field, value] : b.items())
    if (!a.contains(field)) found.push_back({field, "", dumped(value, -1)});
  return found;
}

}  // namespace nanquest
