#include "viewer/model/verdict.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>

namespace nanquest::viewer {
namespace {

using Json = nlohmann::json;

const Json& member(const Json& object, const char* name) {
  static const Json nothing;
  if (!object.is_object()) return nothing;
  const auto found = object.find(name);
  return found == object.end() ? nothing : *found;
}

void take(const Json& object, const char* name, std::string& out) {
  if (const Json& j = member(object, name); j.is_string()) out = j.get<std::string>();
}

void take(const Json& object, const char* name, bool& out) {
  if (const Json& j = member(object, name); j.is_boolean()) out = j.get<bool>();
}

void take(const Json& object, const char* name, std::int64_t& out) {
  if (const Json& j = member(object, name); j.is_number_integer()) out = j.get<std::int64_t>();
}

double real(const Json& j) {
  return j.is_number() ? j.get<double>() : std::numeric_limits<double>::quiet_NaN();
}

void take(const Json& object, const char* name, std::vector<std::int64_t>& out) {
  for (const Json& j : member(object, name))
    if (j.is_number_integer()) out.push_back(j.get<std::int64_t>());
}

void take(const Json& object, const char* name, std::vector<std::string>& out) {
  for (const Json& j : member(object, name)) {
    if (j.is_string())
      out.push_back(j.get<std::string>());
    else if (j.is_number())
      out.push_back(j.dump());
  }
}

void take_reproduction(const Json& j, Verdict& v) {
  take(j, "bit_exact", v.bit_exact);
  take(j, "basis", v.basis);
  take(j, "outputs_compared", v.outputs_compared);
  take(j, "mismatched", v.mismatched);
  take(j, "opaque_ops", v.opaque_ops);
  if (const Json& first = member(j, "first_mismatch"); first.is_number_integer())
    v.first_mismatch = first.get<std::int64_t>();
}

void take_culprit(const Json& j, Verdict& v) {
  take(j, "op", v.op);
  take(j, "index", v.index);
  take(j, "node", v.node);
  take(j, "module", v.module);
  take(j, "tensor", v.tensor);
  take(j, "value", v.value);
  std::int64_t count = 0;
  take(j, "count", count);
  v.count = static_cast<std::uint64_t>(std::max<std::int64_t>(count, 0));
  take(j, "first", v.first);
  take(j, "stack", v.stack);
}

void take_trials(const Json& j, Verdict& v) {
  for (const Json& row : member(j, "evidence")) {
    VerdictEvidence e;
    take(row, "name", e.name);
    take(row, "value", e.value);
    take(row, "limit", e.limit);
    for (const Json& x : member(row, "series")) e.series.push_back(real(x));
    if (!e.name.empty()) v.evidence.push_back(std::move(e));
  }
  for (const Json& row : member(j, "counterfactuals")) {
    VerdictTrial t;
    take(row, "change", t.change);
    take(row, "kind", t.kind);
    take(row, "scope", t.scope);
    take(row, "result", t.result);
    take(row, "steps", t.steps);
    if (!t.change.empty()) v.trials.push_back(std::move(t));
  }
  if (const Json& row = member(j, "fix"); row.is_object()) {
    VerdictFix f;
    take(row, "change", f.change);
    take(row, "advice", f.advice);
    take(row, "scope", f.scope);
    take(row, "verified", f.verified);
    take(row, "placebo_failed", f.placebo_failed);
    take(row, "minimal", f.minimal);
    v.fix = std::move(f);
  }
}

Error bad(const std::string& message, const std::string& hint) {
  return {ErrorCode::bad_file, message, hint};
}

}  // namespace

Result<Verdict> parse_verdict(const std::string& json) {
  const Json j = Json::parse(json, nullptr, false);
  const std::string again = "make it again with nanquest-replay SNAPSHOT";
  std::string format;
  take(j, "format", format);
  if (format != "nanquest.verdict") return bad("not a nanquest verdict", again);
  std::int64_t version = 0;
  take(j, "version", version);
  if (version < 1) return bad("a verdict without a version", again);
  if (version > 1)
    return bad("verdict of version " + std::to_string(version) + ", this program knows version 1",
               "use a newer nanquest-viewer");
  Verdict v;
  take(j, "step", v.step);
  take(j, "rank", v.rank);
  take(j, "found", v.found);
  take_reproduction(member(j, "reproduction"), v);
  take_culprit(member(j, "culprit"), v);
  take(j, "phase", v.phase);
  take(j, "origin", v.origin);
  take(j, "cause", v.cause);
  take(j, "explanation", v.explanation);
  take(j, "advice", v.advice);
  take(j, "source", v.source);
  if (const double c = real(member(j, "confidence")); !std::isnan(c)) v.confidence = std::clamp(c, 0.0, 1.0);
  const Json& precision = member(j, "precision");
  take(precision, "fp32", v.fp32);
  take(precision, "fp64", v.fp64);
  take(precision, "verdict", v.precision);
  take_trials(j, v);
  const Json& samples = member(j, "samples");
  take(samples, "poison", v.poison);
  take(samples, "poison_ids", v.poison_ids);
  take(samples, "batch", v.batch);
  take(j, "not_tested", v.not_tested);
  return v;
}

Result<Verdict> read_verdict(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return bad(path + ": cannot be read", "run nanquest-replay on the snapshot beside it");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  Result<Verdict> verdict = parse_verdict(text);
  if (!verdict) return bad(path + ": " + verdict.error().message, verdict.error().hint);
  return verdict;
}

std::string cause_words(const std::string& label) {
  static const std::pair<const char*, const char*> words[] = {
      {"ALL_MASKED_ROW", "a softmax over entries that are all masked"},
      {"MASK_OVERFLOW", "a mask constant left the number format's range"},
      {"FP16_OVERFLOW", "a value left the number format's range"},
      {"EXP_OVERFLOW", "an exponential of too large an argument"},
      {"LOG_ZERO", "a logarithm of exactly zero"},
      {"DOMAIN", "an argument outside the function's domain"},
      {"DIV_ZERO", "a division by an exact zero"},
      {"EPS_UNDERFLOW", "the protecting epsilon vanished in the number format"},
      {"EMPTY_REDUCTION", "a reduction over no elements"},
      {"ZERO_TIMES_INF", "zero times an infinity"},
      {"INF_LOGIT", "an infinite logit reached a softmax or a loss"},
      {"SINGULAR_GRAD", "a derivative that is infinite at this point"},
      {"UNSELECTED_BRANCH", "a branch that was not selected still sent NaN back"},
      {"LOGSPACE_INF_GRAD", "log-space arithmetic on nothing but -Inf"},
      {"DEGENERATE_LINALG", "a degenerate matrix"},
      {"INFEASIBLE_TARGET", "a target that the loss cannot meet"},
      {"NORM_OVERFLOW", "the norm of the gradients overflowed"},
      {"LOSS_SCALE", "the loss scale itself went wrong"},
      {"DIVERGENCE", "values grew over many steps"},
      {"BAD_DATA", "the batch holds bad values"},
      {"BAD_STATE", "a weight, buffer or optimizer state was bad already"},
      {"HARDWARE", "the same inputs give different outputs"},
      {"UNKNOWN", "the evidence does not decide"},
  };
  for (const auto& [name, text] : words)
    if (label == name) return text;
  return "";
}

}  // namespace nanquest::viewer
