#include <cmath>
#include <nlohmann/json.hpp>

#include "replay/report/report.h"

namespace nanquest {
namespace {

using Json = nlohmann::ordered_json;

Json text_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
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

Json reproduction_json(const Reproduction& r) {
  return {{"bit_exact", r.bit_exact},
          {"basis", r.basis},
          {"outputs_compared", r.outputs_compared},
          {"mismatched", r.mismatched},
          {"opaque_ops", r.opaque_ops},
          {"first_mismatch", r.first_mismatch ? Json(*r.first_mismatch) : Json(nullptr)},
          {"differences", r.differences}};
}

Json culprit_json(const CulpritInfo& c) {
  return {{"op", text_or_null(c.op)},
          {"index", c.index},
          {"node", text_or_null(c.node)},
          {"module", c.module},
          {"tensor", text_or_null(c.tensor)},
          {"value", c.value},
          {"count", c.count},
          {"first", c.first},
          {"stack", c.stack}};
}

Json ranks_json(const Ranks& r) {
  Json first = nullptr, arrived = nullptr, files = Json::object();
  if (r.first)
    first = {{"rank", r.first->rank},
             {"op", text_or_null(r.first->op)},
             {"module", r.first->module},
             {"index", r.first->index},
             {"file", r.first->file}};
  if (!r.arrived_by.empty()) arrived = {{"op", r.arrived_by}, {"index", r.arrived_index}};
  for (const auto& [rank, file] : r.files) files[std::to_string(rank)] = file;
  return {{"world_size", r.world_size},
          {"local", r.local},
          {"arrived_by", arrived},
          {"first", first},
          {"files", files},
          {"missing", r.missing},
          {"text", r.text}};
}

/// Fills `out` from `j[key]` when it is there and not null; leaves it alone otherwise.
template <class T>
void take(const Json& j, const char* key, T& out) {
  if (auto it = j.find(key); it != j.end() && !it->is_null()) out = it->template get<T>();
}

Evidence evidence_from(const Json& j) {
  Evidence e;
  take(j, "name", e.name);
  take(j, "value", e.value);
  take(j, "limit", e.limit);
  if (auto it = j.find("series"); it != j.end())
    for (const Json& x : *it) e.series.push_back(x.is_number() ? x.get<double>() : std::nan(""));
  return e;
}

Counterfactual counterfactual_from(const Json& j) {
  Counterfactual c;
  take(j, "change", c.change);
  take(j, "kind", c.kind);
  take(j, "scope", c.scope);
  take(j, "result", c.result);
  take(j, "steps", c.steps);
  return c;
}

void fill_reproduction(const Json& j, Reproduction& r) {
  take(j, "bit_exact", r.bit_exact);
  take(j, "basis", r.basis);
  take(j, "outputs_compared", r.outputs_compared);
  take(j, "mismatched", r.mismatched);
  take(j, "opaque_ops", r.opaque_ops);
  take(j, "differences", r.differences);
  if (auto it = j.find("first_mismatch"); it != j.end() && it->is_number())
    r.first_mismatch = it->get<std::int64_t>();
}

void fill_culprit(const Json& j, CulpritInfo& c) {
  take(j, "op", c.op);
  take(j, "index", c.index);
  take(j, "node", c.node);
  take(j, "module", c.module);
  take(j, "tensor", c.tensor);
  take(j, "value", c.value);
  take(j, "count", c.count);
  take(j, "first", c.first);
  take(j, "stack", c.stack);
}

void fill_fix(const Json& j, Verdict& v) {
  Fix f;
  take(j, "change", f.change);
  take(j, "advice", f.advice);
  take(j, "scope", f.scope);
  take(j, "verified", f.verified);
  take(j, "placebo_failed", f.placebo_failed);
  take(j, "minimal", f.minimal);
  v.fix = f;
}

Ranks ranks_from(const Json& j) {
  Ranks r;
  take(j, "world_size", r.world_size);
  take(j, "local", r.local);
  take(j, "missing", r.missing);
  take(j, "text", r.text);
  if (j.contains("arrived_by") && j["arrived_by"].is_object()) {
    take(j["arrived_by"], "op", r.arrived_by);
    take(j["arrived_by"], "index", r.arrived_index);
  }
  if (j.contains("first") && j["first"].is_object()) {
    RankCulprit first;
    take(j["first"], "rank", first.rank);
    take(j["first"], "op", first.op);
    take(j["first"], "module", first.module);
    take(j["first"], "index", first.index);
    take(j["first"], "file", first.file);
    r.first = first;
  }
  if (j.contains("files") && j["files"].is_object())
    for (const auto& [rank, file] : j["files"].items())
      r.files.emplace_back(std::stoi(rank), file.get<std::string>());
  return r;
}

Verdict verdict_from(const Json& j) {
  Verdict v;
  take(j, "snapshot", v.snapshot);
  take(j, "step", v.step);
  take(j, "rank", v.rank);
  take(j, "found", v.found);
  if (j.contains("reproduction")) fill_reproduction(j["reproduction"], v.reproduction);
  take(j, "phase", v.phase);
  if (j.contains("culprit") && j["culprit"].is_object()) fill_culprit(j["culprit"], v.culprit);
  take(j, "origin", v.origin);
  take(j, "cause", v.cause);
  take(j, "confidence", v.confidence);
  take(j, "explanation", v.explanation);
  take(j, "source", v.source);
  take(j, "advice", v.advice);
  if (j.contains("precision")) {
    take(j["precision"], "fp32", v.precision.fp32);
    take(j["precision"], "fp64", v.precision.fp64);
    take(j["precision"], "verdict", v.precision.verdict);
  }
  if (j.contains("evidence"))
    for (const Json& e : j["evidence"]) v.evidence.push_back(evidence_from(e));
  if (j.contains("counterfactuals"))
    for (const Json& c : j["counterfactuals"]) v.counterfactuals.push_back(counterfactual_from(c));
  if (j.contains("fix") && j["fix"].is_object()) fill_fix(j["fix"], v);
  if (j.contains("samples")) {
    take(j["samples"], "poison", v.poison);
    take(j["samples"], "batch", v.batch);
    take(j["samples"], "poison_ids", v.poison_ids);
  }
  take(j, "not_tested", v.not_tested);
  if (j.contains("ranks") && j["ranks"].is_object()) v.ranks = ranks_from(j["ranks"]);
  return v;
}

}  // namespace

std::string to_json(const Verdict& v) {
  Json evidence = Json::array(), counterfactuals = Json::array();
  for (const Evidence& e : v.evidence) evidence.push_back(evidence_json(e));
  for (const Counterfactual& c : v.counterfactuals)
    counterfactuals.push_back({{"change", c.change},
                               {"kind", c.kind},
                               {"scope", c.scope},
                               {"result", c.result},
                               {"steps", c.steps}});
  Json fix = nullptr;
  if (v.fix)
    fix = {{"change", v.fix->change},
           {"advice", v.fix->advice},
           {"scope", v.fix->scope},
           {"verified", v.fix->verified},
           {"placebo_failed", v.fix->placebo_failed},
           {"minimal", v.fix->minimal}};
  Json j = {{"format", "nanquest.verdict"},
            {"version", 1},
            {"snapshot", v.snapshot},
            {"step", v.step},
            {"rank", v.rank},
            {"found", v.found},
            {"reproduction", reproduction_json(v.reproduction)},
            {"phase", text_or_null(v.phase)},
            {"culprit", v.found ? culprit_json(v.culprit) : Json(nullptr)},
            {"origin", v.found ? Json(v.origin) : Json(nullptr)},
            {"cause", v.found ? Json(v.cause) : Json(nullptr)},
            {"confidence", std::round(v.confidence * 100) / 100},
            {"explanation", v.explanation},
            {"precision",
             {{"fp32", v.precision.fp32},
              {"fp64", v.precision.fp64},
              {"verdict", text_or_null(v.precision.verdict)}}},
            {"evidence", evidence},
            {"counterfactuals", counterfactuals},
            {"fix", fix},
            {"advice", v.advice},
            {"source", v.source},
            {"samples", {{"poison", v.poison}, {"batch", v.batch}, {"poison_ids", v.poison_ids}}},
            {"not_tested", v.not_tested}};
  if (v.ranks) j["ranks"] = ranks_json(*v.ranks);
  // Sample ids and paths may hold any bytes; a report must not fail on them.
  return j.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<Verdict> verdict_from_json(const std::string& text) {
  const Json j = Json::parse(text, nullptr, false);
  if (j.is_discarded() || !j.is_object())
    return Error{ErrorCode::bad_file, "verdict: not a JSON object",
                 "make it again with nanquest-replay SNAPSHOT"};
  if (j.value("format", "") != "nanquest.verdict")
    return Error{ErrorCode::bad_file, "verdict: \"format\" is not \"nanquest.verdict\"", ""};
  if (const int version = j.value("version", 0); version != 1)
    return Error{ErrorCode::bad_file, "verdict: version " + std::to_string(version) + " is not known",
                 "this program reads version 1; use a newer nanquest"};
  try {
    return verdict_from(j);
  } catch (const std::exception& e) {
    return Error{ErrorCode::bad_file, std::string("verdict: ") + e.what(), ""};
  }
}

}  // namespace nanquest
