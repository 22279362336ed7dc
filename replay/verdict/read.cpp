#include <charconv>
#include <cmath>

#include "probe/snapshot/atomic_file.h"
#include "replay/verdict/fields.h"
#include "replay/verdict/json.h"

namespace nanquest {
namespace {

using verdict_file::Fields;
using verdict_file::Json;

Evidence evidence_from(const Fields& j) {
  Evidence e;
  j.take("name", e.name);
  j.take("value", e.value);
  j.take("limit", e.limit);
  if (const Json* series = j.member("series"); series && series->is_array())
    for (const Json& x : *series) e.series.push_back(x.is_number() ? x.get<double>() : std::nan(""));
  else if (series)
    j.fail("series", *series, "a list of numbers");
  return e;
}

Counterfactual counterfactual_from(const Fields& j) {
  Counterfactual c;
  j.take("change", c.change);
  j.take("kind", c.kind);
  j.take("scope", c.scope);
  j.take("result", c.result);
  j.take("steps", c.steps);
  return c;
}

Fix fix_from(const Fields& j) {
  Fix f;
  j.take("change", f.change);
  j.take("advice", f.advice);
  j.take("scope", f.scope);
  j.take("verified", f.verified);
  j.take("placebo_failed", f.placebo_failed);
  j.take("minimal", f.minimal);
  return f;
}

void fill_reproduction(const Fields& j, Reproduction& r) {
  j.take("bit_exact", r.bit_exact);
  j.take("basis", r.basis);
  j.take("outputs_compared", r.outputs_compared);
  j.take("mismatched", r.mismatched);
  j.take("opaque_ops", r.opaque_ops);
  j.take("first_mismatch", r.first_mismatch);
  j.take("differences", r.differences);
  j.take("failed_ops", r.failed_ops);
  j.object("elsewhere", [&](const Fields& f) {
    Elsewhere& e = r.elsewhere.emplace();
    f.take("recorded_on", e.recorded_on);
    f.take("replayed_on", e.replayed_on);
    f.take("bound", e.bound);
    f.take("distance", e.distance);
    f.take("outside", e.outside);
  });
}

void fill_culprit(const Fields& j, CulpritInfo& c) {
  j.take("op", c.op);
  j.take("index", c.index);
  j.take("node", c.node);
  j.take("module", c.module);
  j.take("inside", c.inside);
  j.take("tensor", c.tensor);
  j.take("part", c.part);
  j.take("pass", c.pass);
  j.take("value", c.value);
  j.take("count", c.count);
  j.take("first", c.first);
  j.take("stack", c.stack);
}

Blamed blamed_from(const Fields& j) {
  Blamed b;
  j.take("op", b.op);
  j.take("index", b.index);
  j.take("module", b.module);
  j.take("phase", b.phase);
  j.take("tensor", b.tensor);
  return b;
}

void fill_blame(const Fields& j, BlameInfo& b) {
  j.take("tried", b.tried);
  j.take("runs", b.runs);
  j.list("set", [&](const Fields& f) { b.set.push_back(blamed_from(f)); });
  j.list("intended", [&](const Fields& f) { b.intended.push_back(blamed_from(f)); });
  j.list("assumed", [&](const Fields& f) { b.assumed.push_back(blamed_from(f)); });
}

Claim claim_from(const Fields& j) {
  Claim c;
  j.take("cause", c.cause);
  j.take("for", c.facts_for);
  j.take("against", c.facts_against);
  return c;
}

RootCause root_from(const Fields& j) {
  RootCause r;
  j.take("cause", r.cause);
  j.take("change", r.change);
  j.take("steps", r.steps);
  j.take("scope", r.scope);
  j.take("verified", r.verified);
  j.take("cured", r.cured);
  j.take("tried", r.tried);
  j.take("explanation", r.explanation);
  j.take("file", r.file);
  return r;
}

void fill_unseen(const Fields& j, Unseen& u) {
  j.take("ops", u.ops);
  j.take("loss", u.loss);
  j.take("gradients", u.gradients);
  j.list("names", [&](const Fields& f) {
    auto& [op, count] = u.names.emplace_back();
    f.take("op", op);
    f.take("count", count);
  });
}

RankCulprit rank_culprit_from(const Fields& j) {
  RankCulprit c;
  j.take("rank", c.rank);
  j.take("op", c.op);
  j.take("module", c.module);
  j.take("index", c.index);
  j.take("file", c.file);
  j.take("origin", c.origin);
  j.take("tensor", c.tensor);
  j.take("part", c.part);
  j.take("pass", c.pass);
  j.take("step", c.step);
  return c;
}

Ranks ranks_from(const Fields& j) {
  Ranks r;
  j.take("world_size", r.world_size);
  j.take("local", r.local);
  j.take("missing", r.missing);
  j.take("rows", r.rows);
  j.take("text", r.text);
  j.object("arrived_by", [&](const Fields& by) {
    by.take("op", r.arrived_by);
    by.take("index", r.arrived_index);
  });
  j.object("first", [&](const Fields& first) { r.first = rank_culprit_from(first); });
  j.object("files", [&](const Fields& files) {
    for (const auto& [key, file] : j.member("files")->items()) {
      std::int32_t rank = 0;
      const auto end = key.data() + key.size();
      if (std::from_chars(key.data(), end, rank).ptr != end || key.empty())
        files.fail(key, file, "the file of a rank");
      else
        files.take(key.c_str(), r.files.emplace_back(rank, "").second);
    }
  });
  return r;
}

void fill_verdict(const Fields& j, Verdict& v) {
  j.take("snapshot", v.snapshot);
  j.take("step", v.step);
  j.take("rank", v.rank);
  j.take("found", v.found);
  j.object("unseen", [&](const Fields& f) { fill_unseen(f, v.unseen); });
  j.object("reproduction", [&](const Fields& f) { fill_reproduction(f, v.reproduction); });
  j.take("phase", v.phase);
  j.object("culprit", [&](const Fields& f) { fill_culprit(f, v.culprit); });
  j.take("origin", v.origin);
  j.take("cause", v.cause);
  j.list("claims", [&](const Fields& f) { v.claims.push_back(claim_from(f)); });
  j.object("blame", [&](const Fields& f) { fill_blame(f, v.blame); });
  j.object("root", [&](const Fields& f) { v.root = root_from(f); });
  if (const Json* c = j.member("confidence")) {
    v.confidence = c->is_number() ? c->get<double>() : -1;
    if (!(v.confidence >= 0 && v.confidence <= 1)) j.fail("confidence", *c, "a number from 0 to 1");
  }
  j.take("explanation", v.explanation);
  j.take("source", v.source);
  j.take("advice", v.advice);
  j.object("precision", [&](const Fields& f) {
    f.take("fp32", v.precision.fp32);
    f.take("fp64", v.precision.fp64);
    f.take("verdict", v.precision.verdict);
  });
  j.list("evidence", [&](const Fields& f) { v.evidence.push_back(evidence_from(f)); });
  j.list("counterfactuals", [&](const Fields& f) { v.counterfactuals.push_back(counterfactual_from(f)); });
  j.object("fix", [&](const Fields& f) { v.fix = fix_from(f); });
  j.object("samples", [&](const Fields& f) {
    f.take("poison", v.poison);
    f.take("batch", v.batch);
    f.take("poison_ids", v.poison_ids);
  });
  j.take("not_tested", v.not_tested);
  j.object("ranks", [&](const Fields& f) { v.ranks = ranks_from(f); });
}

Error bad(const std::string& message,
          const std::string& hint = "make it again with nanquest-replay SNAPSHOT") {
  return {ErrorCode::bad_file, "verdict: " + message, hint};
}

}  // namespace

Result<Verdict> verdict_from_json(const std::string& text) {
  const Json j = Json::parse(text, nullptr, false);
  if (!j.is_object()) return bad("not a JSON object");
  std::string wrong, format;
  std::int64_t version = 0;
  const Fields fields(j, "", wrong);
  fields.take("format", format);
  if (format != "nanquest.verdict") return bad("\"format\" is not \"nanquest.verdict\"");
  fields.take("version", version);
  if (version < 1 || version > kVerdictVersion)
    return version < 1 ? bad("it has no version")
                       : bad("of version " + std::to_string(version) + ", this program knows version " +
                                 std::to_string(kVerdictVersion),
                             "use a newer nanquest");
  Verdict v;
  fill_verdict(fields, v);
  if (!wrong.empty()) return bad(wrong);
  return v;
}

Result<Verdict> read_verdict(const std::string& path) {
  const Result<std::string> text = read_whole_file(path);
  if (!text) return text.error();
  Result<Verdict> verdict = verdict_from_json(*text);
  if (!verdict)
    return Error{ErrorCode::bad_file, path + ": " + verdict.error().message, verdict.error().hint};
  return verdict;
}

}  // namespace nanquest
