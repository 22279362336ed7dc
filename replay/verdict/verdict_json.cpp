// The file "nanquest.verdict": each member once, for writer and reader.
#include "probe/snapshot/atomic_file.h"
#include "replay/verdict/confidence.h"
#include "replay/verdict/fields.h"
#include "replay/verdict/json.h"

namespace nanquest {

constexpr JsonHead kVerdictHead = {.format = "nanquest.verdict",
                                   .name = "verdict",
                                   .version = kVerdictVersion,
                                   .again = "make it again with nanquest-replay SNAPSHOT"};

void describe(auto& file, As<Evidence> auto& e) {
  file.field("name", e.name);
  file.field("value", e.value);
  file.field("limit", e.limit);
  file.only_if(!e.series.empty(), "series", e.series);
  file.derived(!e.series.empty(), "steps", e.series.size());
}

void describe(auto& file, As<Counterfactual> auto& c) {
  file.field("change", c.change);
  file.field("kind", c.kind);
  file.field("scope", c.scope);
  file.field("result", c.result);
  file.field("steps", c.steps);
  file.only_if(!c.not_a_fix.empty(), "not_a_fix", c.not_a_fix);
  file.only_if(!c.measured.empty(), "measured", c.measured);
}

void describe(auto& file, As<Fix> auto& f) {
  file.field("change", f.change);
  file.field("advice", f.advice);
  file.field("scope", f.scope);
  file.field("verified", f.verified);
  file.field("placebo_failed", f.placebo_failed);
  file.field("minimal", f.minimal);
  file.only_if(!f.patch.empty(), "patch", f.patch);
}

void describe(auto& file, As<Elsewhere> auto& e) {
  file.field("recorded_on", e.recorded_on);
  file.field("replayed_on", e.replayed_on);
  file.field("bound", e.bound);
  file.field("distance", e.distance);
  file.field("outside", e.outside);
}

void describe(auto& file, As<Reproduction> auto& r) {
  file.field("bit_exact", r.bit_exact);
  file.field("basis", r.basis);
  file.field("outputs_compared", r.outputs_compared);
  file.field("mismatched", r.mismatched);
  file.field("opaque_ops", r.opaque_ops);
  file.field("first_mismatch", r.first_mismatch);
  file.field("differences", r.differences);
  file.only_if(r.failed_ops > 0, "failed_ops", r.failed_ops);
  file.derived(r.elsewhere.has_value(), "agreement", r.agreement());
  file.only_if(r.elsewhere.has_value(), "elsewhere", r.elsewhere);
}

void describe(auto& file, As<CulpritInfo> auto& c) {
  file.text_or_null("op", c.op);
  file.field("index", c.index);
  file.text_or_null("node", c.node);
  file.field("module", c.module);
  file.text_or_null("tensor", c.tensor);
  file.field("value", c.value);
  file.field("count", c.count);
  file.field("first", c.first);
  file.field("stack", c.stack);
  file.only_if(!c.inside.empty(), "inside", c.inside);
  file.only_if(!c.part.empty(), "part", c.part);
  file.only_if(!c.pass.empty(), "pass", c.pass);
}

void describe(auto& file, As<Blamed> auto& b) {
  file.text_or_null("op", b.op);
  file.field("index", b.index);
  file.field("module", b.module);
  file.field("phase", b.phase);
  file.text_or_null("tensor", b.tensor);
}

void describe(auto& file, As<BlameInfo> auto& b) {
  file.field("tried", b.tried);
  file.field("set", b.set);
  file.field("intended", b.intended);
  file.field("assumed", b.assumed);
  file.field("runs", b.runs);
}

void describe(auto& file, As<Claim> auto& c) {
  file.field("cause", c.cause);
  file.field("for", c.facts_for);
  file.field("against", c.facts_against);
  file.only_if(c.depth.has_value(), "depth", c.depth);
}

void describe(auto& file, As<Likely> auto& l) {
  file.field("cause", l.cause);
  file.fraction("confidence", l.confidence);
}

void describe(auto& file, As<Shown> auto& s) {
  file.field("deep", s.deep);
  file.field("agrees", s.agrees);
  file.field("helps", s.helps);
  file.field("verified", s.verified);
  file.field("same_event", s.same_event);
  file.field("in_step", s.in_step);
}

void describe(auto& file, As<RootCause> auto& r) {
  file.field("cause", r.cause);
  file.field("change", r.change);
  file.field("steps", r.steps);
  file.field("scope", r.scope);
  file.field("verified", r.verified);
  file.field("cured", r.cured);
  file.field("tried", r.tried);
  file.field("explanation", r.explanation);
  file.field("file", r.file);
}

void describe(auto& file, As<std::pair<std::string, std::int64_t>> auto& name) {
  file.field("op", name.first);
  file.field("count", name.second);
}

void describe(auto& file, As<Unseen> auto& u) {
  file.field("ops", u.ops);
  file.field("names", u.names);
  file.field("loss", u.loss);
  file.field("gradients", u.gradients);
}

void describe(auto& file, As<PrecisionInfo> auto& p) {
  file.field("fp32", p.fp32);
  file.field("fp64", p.fp64);
  file.field("verdict", p.verdict);
}

void describe(auto& file, As<RankCulprit> auto& c) {
  file.field("rank", c.rank);
  file.text_or_null("op", c.op);
  file.field("module", c.module);
  file.field("index", c.index);
  file.field("file", c.file);
  file.only_if(c.origin != Origin::op, "origin", c.origin);
  file.only_if(c.origin != Origin::op, "tensor", c.tensor);
  file.only_if(!c.part.empty(), "part", c.part);
  file.only_if(!c.pass.empty(), "pass", c.pass);
  file.only_if(c.step >= 0, "step", c.step);
}

void describe(auto& file, As<Ranks> auto& r) {
  file.field("world_size", r.world_size);
  file.field("local", r.local);
  file.group(
      "arrived_by",
      [&](auto& by) {
        by.field("op", r.arrived_by);
        by.field("index", r.arrived_index);
      },
      !r.arrived_by.empty());
  file.field("first", r.first);
  file.by_number("files", r.files);
  file.field("missing", r.missing);
  file.field("text", r.text);
  file.only_if(!r.rows.empty(), "rows", r.rows);
}

void describe(auto& file, As<Verdict> auto& v) {
  file.field("snapshot", v.snapshot);
  file.field("step", v.step);
  file.field("rank", v.rank);
  file.field("found", v.found);
  file.only_if(!v.on_record.empty(), "on_record", v.on_record);
  file.field("reproduction", v.reproduction);
  file.field("phase", v.phase);
  file.or_null(v.found, "culprit", v.culprit);
  file.or_null(v.found, "origin", v.origin);
  file.or_null(v.found, "cause", v.cause);
  file.field("claims", v.claims);
  file.field("blame", v.blame);
  file.field("root", v.root);
  file.fraction("confidence", v.confidence);
  file.only_if(v.likely.has_value(), "likely", v.likely);
  file.derived(!v.claims.empty() && v.claims.front().depth && (v.cause != Label::unknown || v.likely),
               "shown", shown_by(v));
  file.field("explanation", v.explanation);
  file.field("precision", v.precision);
  file.field("evidence", v.evidence);
  file.field("counterfactuals", v.counterfactuals);
  file.field("fix", v.fix);
  file.field("advice", v.advice);
  file.field("source", v.source);
  file.group("samples", [&](auto& samples) {
    samples.field("poison", v.poison);
    samples.field("batch", v.batch);
    samples.field("poison_ids", v.poison_ids);
  });
  file.field("not_tested", v.not_tested);
  file.only_if(v.unseen.any(), "unseen", v.unseen);
  file.only_if(v.ranks.has_value(), "ranks", v.ranks);
}

std::string to_json(const Verdict& verdict) {
  return json_text(kVerdictHead, verdict);
}

Result<Verdict> verdict_from_json(const std::string& text) {
  return json_value<Verdict>(kVerdictHead, text);
}

Result<Verdict> read_verdict(const std::string& path) {
  const Result<std::string> text = read_whole_file(path);
  if (!text) return text.error();
  Result<Verdict> verdict = verdict_from_json(*text);
  if (!verdict)
    return Error{ErrorCode::bad_file, path + ": " + verdict.error().message, verdict.error().hint};
  return verdict;
}

std::vector<Difference> differences(const Verdict& first, const Verdict& second) {
  const auto flat = [](const Verdict& verdict) { return Json::parse(to_json(verdict)).flatten(); };
  const Json a = flat(first), b = flat(second);
  std::vector<Difference> found;
  for (const auto& [field, value] : a.items()) {
    const auto other = b.find(field);
    if (other == b.end())
      found.push_back({field, value.dump(), ""});
    else if (*other != value)
      found.push_back({field, value.dump(), other->dump()});
  }
  for (const auto& [field, value] : b.items())
    if (!a.contains(field)) found.push_back({field, "", value.dump()});
  return found;
}

}  // namespace nanquest
