#include "replay/cause/diagnose.h"

#include <algorithm>
#include <cmath>

#include "replay/cause/cause.h"
#include "replay/cause/confidence.h"
#include "replay/cause/culprit.h"
#include "replay/cause/growth.h"
#include "replay/cause/opaque.h"
#include "replay/cause/ranks.h"
#include "replay/cause/samples.h"
#include "replay/cause/values.h"

namespace nanquest {
namespace {

std::string phase_text(Phase phase) {
  switch (phase) {
    case Phase::input:
      return "input";
    case Phase::forward:
      return "forward";
    case Phase::backward:
      return "backward";
    case Phase::optimizer:
      break;
  }
  return "optimizer";
}

CulpritInfo culprit_info(const Case& c) {
  const Culprit& culprit = c.culprit();
  CulpritInfo info;
  info.index = c.op_index();
  if (const OpRow* op = c.op()) {
    info.op = op->name;
    info.node = op->node;
    info.module = c.module_of(c.op_index());
    // A backward op was called by the engine: the line to look at is that of what it differentiates.
    const OpRow* forward = op->forward_op == kNone ? nullptr : &c.doc().ops[op->forward_op];
    for (const OpRow* from : {forward, op}) {
      if (!from || from->stack == kNone) continue;
      const std::vector<std::string>& frames = c.doc().stacks[from->stack];
      info.stack.insert(info.stack.end(), frames.begin(), frames.end());
    }
  }
  info.tensor = culprit.tensor_name;
  info.value = culprit.value;
  info.count = culprit.count;
  info.first = culprit.first;
  return info;
}

bool came_from_outside(const Case& c) {
  return c.culprit().origin != "op" && c.culprit().origin != "multi_step";
}

/// Growth that was seen, as evidence with its series; the first three columns.
void add_growth(Verdict& v, const std::vector<Growth>& growth) {
  for (std::size_t i = 0; i < growth.size() && i < 3; ++i) {
    const Growth& g = growth[i];
    char slope[32];
    std::snprintf(slope, sizeof slope, "%+.3f", g.bits_per_step);
    v.evidence.push_back(
        {"growth of " + g.what + " over the last " + std::to_string(g.series.size()) + " steps",
         number_text(g.first) + " to " + number_text(g.last) + ", " + slope + " bits a step", "", g.series});
  }
}

/// Fills `precision` and says in `explanation` what it means. Returns true if values were growing.
bool judge_precision(const Case& c, Verdict& v) {
  const auto run_text = [&](Precision p) -> std::string {
    const RunResult& run = c.whole(p);
    if (run.failed > c.whole(Precision::as_recorded).failed) return "not_run";
    return c.healthy(run) ? "finite" : "non_finite";
  };
  v.precision.fp32 = run_text(Precision::fp32);
  v.precision.fp64 = run_text(Precision::fp64);
  std::vector<Growth> growth = find_growth(c.doc());
  // What grew where the value was born says more than what grew most.
  if (const std::string& module = v.culprit.module; !module.empty())
    std::stable_partition(growth.begin(), growth.end(),
                          [&](const Growth& g) { return g.what.find(" of " + module) != std::string::npos; });
  add_growth(v, growth);
  const bool cured = v.precision.fp32 == "finite" || v.precision.fp64 == "finite";
  if (came_from_outside(c)) {
    v.precision.verdict = "not_a_precision_matter";
  } else if (cured && !growth.empty()) {
    v.precision.verdict = "delayed";
    v.explanation +=
        " The step is finite in " + std::string(v.precision.fp32 == "finite" ? "fp32" : "fp64") + ", but " +
        growth.front().what + " grew from " + number_text(growth.front().first) + " to " +
        number_text(growth.front().last) + " over the last " + std::to_string(growth.front().series.size()) +
        " steps: a wider format delays this, and the root is likely what makes values grow (learning rate, "
        "warm-up, a missing normalisation).";
    v.advice += std::string(v.advice.empty() ? "" : " ") +
                "And look for the root: a smaller learning rate, a longer warm-up or a normalisation (not "
                "tested here).";
    v.not_tested.push_back(
        "the root cause: why values grew over the steps before this one (a replay of one step can't show "
        "it; try a smaller learning rate or a longer warm-up from an earlier checkpoint)");
  } else if (cured) {
    v.precision.verdict = "curable";
  } else {
    v.precision.verdict = "structural";
    const std::vector<std::int32_t>& births = c.whole(Precision::fp64).births;
    if (v.precision.fp64 == "non_finite" &&
        std::find(births.begin(), births.end(), c.op_index()) != births.end())
      v.explanation += " The same op fails in fp64: no number format cures it.";
  }
  return !growth.empty();
}

void add_samples(const Case& c, const Finding& finding, const DiagnoseOptions& options, Verdict& v) {
  v.batch = batch_size(c.doc());
  v.poison = finding.poison;
  if (v.poison.empty() && options.find_samples && options.try_fixes && v.origin == "op" && v.batch >= 2) {
    const double step = std::max(1e-3, c.whole(Precision::as_recorded).seconds);
    const int runs = static_cast<int>(std::min(48.0, options.budget_seconds / step));
    if (runs >= 4) {
      if (options.progress) options.progress("which samples are needed for it");
      const SampleBisection b = bisect_samples(c, runs);
      v.poison = b.poison;
      if (!b.note.empty()) v.evidence.push_back({"samples", b.note, "", {}});
    } else {
      v.not_tested.push_back(
          "which samples of the batch are needed for it (the step is slow; nanquest-replay bisect samples)");
    }
  }
  for (std::int64_t s : v.poison)
    if (static_cast<std::size_t>(s) < c.doc().sample_ids.size())
      v.poison_ids.push_back(c.doc().sample_ids[static_cast<std::size_t>(s)]);
}

void add_not_tested(const Case& c, const FixSearch& search, Verdict& v) {
  for (const std::string& note : search.notes) v.not_tested.push_back(note);
  if (v.fix)
    v.not_tested.push_back(
        "whether training stays finite and learns for 64 more steps with the fix: this file holds one step");
  if (v.origin == "parameter" || v.origin == "buffer" || v.origin == "optimizer_state")
    v.not_tested.push_back("which earlier step wrote the bad value");
  if (!v.reproduction.bit_exact)
    v.not_tested.push_back("that this replay is the same event: it did not come back bit for bit");
  add_opaque(c, v);
}

Verdict judge(const Case& c, const Reproduction& reproduction, const DiagnoseOptions& options) {
  Verdict v;
  v.step = c.doc().step;
  v.rank = c.doc().rank;
  v.reproduction = reproduction;
  if (c.culprit().value.empty()) {
    v.found = false;
    v.explanation = "The step holds no harmful NaN or Inf.";
    return v;
  }
  v.origin = c.culprit().origin;
  v.phase = came_from_outside(c) ? "input" : phase_text(c.op() ? c.op()->phase : c.culprit().phase);
  v.culprit = culprit_info(c);
  if (options.progress) options.progress("reading the culprit's recorded values");
  const Finding finding = find_cause(c);
  v.cause = finding.label;
  v.explanation = finding.explanation;
  v.evidence = finding.evidence;
  v.source = finding.source;
  v.advice = finding.advice;
  if (options.progress) options.progress("the step in fp32 and fp64");
  judge_precision(c, v);
  FixSearch search;
  if (options.try_fixes) search = search_fixes(c, finding, options.progress);
  v.counterfactuals = std::move(search.tried);
  v.fix = search.fix;
  if (v.fix)
    v.fix->advice = v.advice.empty() ? "What made this step finite: " + v.fix->change + "." : v.advice;
  add_samples(c, finding, options, v);
  add_not_tested(c, search, v);
  v.confidence = confidence({.explained = finding.label != "UNKNOWN",
                             .bit_exact = reproduction.bit_exact,
                             .change_helped = search.change_helped,
                             .placebo_failed = search.placebo_failed});
  return v;
}

}  // namespace

Case make_case(const Replayer& replayer) {
  SnapshotDoc doc = replayer.doc();
  ensure_culprit(doc);
  return Case(
      std::move(doc), [&replayer](const RunOptions& options) { return replayer.run(options); },
      [&replayer](const std::string& path) -> std::optional<at::Tensor> {
        auto tensor = replayer.tensor(path);
        if (!tensor) return std::nullopt;
        return std::move(tensor).value();
      });
}

Reproduction reproduction_of(const VerifyResult& r) {
  Reproduction out;
  out.bit_exact = r.bit_exact;
  out.basis = r.basis;
  out.outputs_compared = r.outputs_compared;
  out.mismatched = r.mismatched;
  out.opaque_ops = r.opaque_ops;
  if (r.first_mismatch != kNone) out.first_mismatch = r.first_mismatch;
  out.differences = r.differences;
  return out;
}

Verdict diagnose_case(const Case& c, const Reproduction& reproduction, const DiagnoseOptions& options) {
  try {
    return judge(c, reproduction, options);
  } catch (const std::exception& e) {
    Verdict v;
    v.step = c.doc().step;
    v.rank = c.doc().rank;
    v.reproduction = reproduction;
    v.origin = c.culprit().origin;
    v.culprit = culprit_info(c);
    v.explanation = "The diagnosis stopped: " + std::string(e.what()).substr(0, 300);
    v.not_tested.push_back("everything after that");
    return v;
  }
}

Verdict diagnose(const Replayer& replayer, const std::string& snapshot, const DiagnoseOptions& options) {
  if (options.progress) options.progress("verifying: the step as recorded");
  const Reproduction reproduction = reproduction_of(verify(replayer));
  Verdict v = diagnose_case(make_case(replayer), reproduction, options);
  v.snapshot = snapshot;
  v.ranks = find_ranks(replayer.doc(), snapshot);
  return v;
}

}  // namespace nanquest
