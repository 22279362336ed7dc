#include "replay/cause/diagnose.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "probe/trace/collectives.h"
#include "probe/trace/culprit.h"
#include "replay/case/values.h"
#include "replay/cause/arbiter.h"
#include "replay/cause/cause.h"
#include "replay/cause/culprit.h"
#include "replay/cause/growth.h"
#include "replay/cause/inside.h"
#include "replay/cause/loss_terms.h"
#include "replay/cause/opaque.h"
#include "replay/cause/ranks.h"
#include "replay/cause/samples.h"
#include "replay/cause/twin_facts.h"
#include "replay/lab/lab.h"
#include "replay/verdict/confidence.h"

namespace nanquest {
namespace {

CulpritInfo culprit_info(const Case& c, std::int32_t index) {
  const Culprit& culprit = c.culprit();
  CulpritInfo info;
  info.index = index;
  if (const OpRow* op = c.row(index)) {
    info.op = op->name;
    info.node = op->node;
    info.module = c.module_of(index);
    // A backward op was called by the engine: the line to look at is that of what it differentiates.
    const OpRow* forward = op->forward_op == kNone ? nullptr : &c.doc().ops[op->forward_op];
    for (const OpRow* from : {forward, op}) {
      if (!from || from->stack == kNone) continue;
      const std::vector<std::string>& frames = c.doc().stacks[from->stack];
      info.stack.insert(info.stack.end(), frames.begin(), frames.end());
    }
  }
  info.tensor = culprit.tensor_name;
  info.value = from_word<BadValue>(culprit.value).value_or(BadValue::mixed);
  info.count = culprit.count;
  info.first = culprit.first;
  return info;
}

Blamed blamed(const Case& c, const Suspect& suspect) {
  const OpRow& op = c.graph().op(suspect.op);
  Blamed b{op.name, suspect.op.row(), c.module_of(suspect.op.row()), op.phase, ""};
  if (const SlotId slot = suspect.row ? c.graph().slot(suspect.row) : SlotId{}) {
    b.tensor = get(c.doc(), slot).name;
    b.phase = Phase::input;
  }
  return b;
}

BlameInfo blame_info(const Case& c) {
  BlameInfo info{c.blame().tried, {}, {}, c.blame().runs};
  for (const Suspect& suspect : c.blame().set) info.set.push_back(blamed(c, suspect));
  for (const Suspect& suspect : c.blame().intended) info.intended.push_back(blamed(c, suspect));
  return info;
}

bool came_from_outside(Origin origin) {
  return origin != Origin::op && origin != Origin::multi_step;
}

/// Everything of a verdict that is known before anything is tried.
Verdict verdict_of(const Case& c, const Reproduction& reproduction, const std::string& snapshot) {
  Verdict v;
  v.snapshot = snapshot;
  v.step = c.doc().step;
  v.rank = c.doc().rank;
  v.reproduction = reproduction;
  v.found = !c.culprit().value.empty();
  if (!v.found) return v;
  v.origin = from_word<Origin>(c.culprit().origin).value_or(Origin::op);
  v.culprit = culprit_info(c, c.op_index());
  v.blame = blame_info(c);
  return v;
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

/// Ops that have no kernel in `p` and ran in their own format there, by name; "" if there are none.
std::string kept_format_text(const Case& c, Precision p) {
  std::map<std::string, int> names;
  const RunResult& run = c.whole(p);
  for (std::size_t i = 0; i < run.ops.size(); ++i)
    if (run.ops[i].kept_format) ++names[c.doc().ops[i].name];
  std::string text;
  for (const auto& [name, count] : names)
    text += (text.empty() ? "" : ", ") + name + (count > 1 ? " (" + std::to_string(count) + ")" : "");
  return text;
}

/// So many bits more than values grew over the whole window, from one batch to the next, are no growth.
constexpr double kSuddenBits = 4;

/// Fills `precision` and says in `explanation` what it means.
void judge_precision(const Case& c, bool not_computed, Verdict& v) {
  const auto result = [&](Precision p) {
    const TrialResult result = c.result(c.whole(p));
    return result == TrialResult::failed   ? PrecisionResult::not_run
           : result == TrialResult::finite ? PrecisionResult::finite
                                           : PrecisionResult::non_finite;
  };
  v.precision.fp32 = result(Precision::fp32);
  v.precision.fp64 = result(Precision::fp64);
  for (const Precision p : {Precision::fp32, Precision::fp64})
    if (const std::string kept = kept_format_text(c, p); !kept.empty())
      v.evidence.push_back(
          {"ops without a kernel in " + precision_text(p) + ", run in their own format", kept});
  std::set<std::string> aside;
  if (c.op()) aside = layers_aside(c.graph(), OpId{c.op_index()});
  std::vector<Growth> growth =
      find_growth(c.doc(), [&](const std::string& layer) { return aside.count(layer) == 0; });
  // What grew where the value was born says more than what grew most.
  if (const std::string& module = v.culprit.module; !module.empty())
    std::stable_partition(growth.begin(), growth.end(),
                          [&](const Growth& g) { return g.what.find(" of " + module) != std::string::npos; });
  add_growth(v, growth);
  // With the same weights the batch before was much smaller: no growth from step to step did that.
  const auto jump = growth.empty() ? std::nullopt : times_health(c);
  if (jump && std::log2(*jump) > growth.front().bits + kSuddenBits) growth.clear();
  const bool in_fp32 = v.precision.fp32 == PrecisionResult::finite;
  const bool cured = in_fp32 || v.precision.fp64 == PrecisionResult::finite;
  if (came_from_outside(v.origin) || not_computed) {
    v.precision.verdict = PrecisionVerdict::not_a_precision_matter;
  } else if (cured && !growth.empty()) {
    v.precision.verdict = PrecisionVerdict::delayed;
    v.explanation +=
        " The step is finite in " + std::string(in_fp32 ? "fp32" : "fp64") + ", but " + growth.front().what +
        " grew from " + number_text(growth.front().first) + " to " + number_text(growth.front().last) +
        " over the last " + std::to_string(growth.front().series.size()) +
        " steps: a wider format delays this, and the root is likely what makes values grow (learning rate, "
        "warm-up, a missing normalisation).";
    v.advice += std::string(v.advice.empty() ? "Look" : " Then look") +
                " for the root: a smaller learning rate, a longer warm-up or a normalisation (not "
                "tested here).";
    v.not_tested.push_back(
        "the root cause: why values grew over the steps before this one (a replay of one step can't show "
        "it; try a smaller learning rate or a longer warm-up from an earlier checkpoint)");
  } else if (cured) {
    v.precision.verdict = PrecisionVerdict::curable;
  } else if (v.precision.fp64 == PrecisionResult::non_finite) {
    v.precision.verdict = PrecisionVerdict::structural;
    const std::vector<std::int32_t>& births = c.whole(Precision::fp64).births;
    if (std::find(births.begin(), births.end(), c.op_index()) != births.end())
      v.explanation += " The same op fails in fp64: no number format cures it.";
  }
}

/// The search for samples ends after as many runs.
constexpr int kMaxSampleRuns = 48;

void add_samples(const Case& c, const Finding& finding, const DiagnoseOptions& options, Verdict& v) {
  v.batch = batch_size(c.doc());
  v.poison = finding.poison;
  if (v.poison.empty() && options.find_samples && options.try_fixes && v.origin == Origin::op &&
      v.batch >= 2) {
    if (c.has_time()) {
      if (options.progress) options.progress("which samples are needed for it");
      const SampleBisection b = bisect_samples(c, kMaxSampleRuns);
      v.poison = b.poison;
      v.counterfactuals.insert(v.counterfactuals.end(), b.tried.begin(), b.tried.end());
      if (!b.note.empty()) v.evidence.push_back({"samples", b.note});
    } else {
      v.not_tested.push_back("which samples of the batch are needed for it (nanquest-replay bisect samples)");
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
  if (v.origin == Origin::parameter || v.origin == Origin::buffer || v.origin == Origin::optimizer_state)
    v.not_tested.push_back("which earlier step wrote the bad value");
  if (!v.reproduction.bit_exact)
    v.not_tested.push_back("that this replay is the same event: it did not come back bit for bit");
  if (!c.has_time())
    v.not_tested.push_back(Lab::stopped() ? "what was left to try when it was stopped"
                                          : "what " + number_text(c.lab()->seconds()) +
                                                " seconds left no time for (more: --budget SECONDS)");
  add_opaque(c, v);
}

void judge(const Case& c, const DiagnoseOptions& options, Verdict& v) {
  add_unseen(c, v);
  if (!v.found) {
    v.explanation = v.unseen.any() ? "No harmful NaN or Inf was seen, but not every value could be looked at."
                                   : "The step holds no harmful NaN or Inf.";
    return;
  }
  v.phase = came_from_outside(v.origin) ? Phase::input : c.op() ? c.op()->phase : c.culprit().phase;
  if (options.progress) options.progress("reading the culprit's recorded values");
  Decision decision = find_cause(c);
  const Finding& finding = decision.finding;
  v.claims = std::move(decision.claims);
  v.cause = finding.label;
  v.explanation = finding.explanation;
  v.evidence = finding.evidence;
  v.source = finding.source;
  v.advice = finding.advice;
  v.origin = finding.origin.value_or(v.origin);
  if (finding.op == kNone) add_inside(c, v);
  add_loss_terms(c, v);
  if (finding.phase) v.phase = finding.phase;
  if (finding.op != kNone) v.culprit = culprit_info(c, finding.op);
  if (options.progress && c.twin() && c.twin()->there()) options.progress("the step on a healthy batch");
  add_twin_facts(c, finding, v);
  if (options.progress) options.progress("the step in fp32 and fp64");
  judge_precision(c, finding.not_computed, v);
  FixSearch search;
  if (options.try_fixes) search = search_fixes(c, finding, options.progress);
  v.counterfactuals = std::move(search.tried);
  v.fix = search.fix;
  if (v.fix)
    v.fix->advice = v.advice.empty() ? "What made this step finite: " + v.fix->change + "." : v.advice;
  add_samples(c, finding, options, v);
  add_not_tested(c, search, v);
  v.confidence = confidence_of(v);
}

}  // namespace

namespace {

/// True if what was found by trying says more than the file: not where bad values arrived from another rank,
/// and not where another process's file must be asked.
bool is_ours(const SnapshotDoc& doc, const Blame& blame) {
  if (blame.set.empty()) return false;
  const OpRow* op = find_row(doc, blame.set.front().op);
  return op && !is_collective(op->name);
}

}  // namespace

Case make_case(const Replayer& replayer, LabLimits limits) {
  SnapshotDoc doc = replayer.doc();
  ensure_culprit(doc);
  const auto lab = std::make_shared<Lab>(replayer, limits);
  Blame blame;
  std::shared_ptr<TwinRun> twin;
  const bool silent = doc.culprit.value == "silent";
  if (!doc.culprit.value.empty() && (!silent || doc.twin.step >= 0)) {
    const RunResult recorded = lab->run({});
    twin = std::make_shared<TwinRun>(*lab, recorded);
    if (!silent) blame = find_blame(*lab, recorded, twin.get());
  }
  if (is_ours(doc, blame)) blame_suspect(doc, blame.set.front());
  Case made(
      std::move(doc), [lab](const RunOptions& options) { return lab->run(options); },
      [&replayer](const std::string& path) -> std::optional<at::Tensor> {
        auto tensor = replayer.tensor(path);
        if (!tensor) return std::nullopt;
        return std::move(tensor).value();
      });
  made.set_lab(lab);
  made.set_twin(std::move(twin));
  made.set_blame(std::move(blame));
  return made;
}

Reproduction reproduction_of(const VerifyResult& r) {
  Reproduction out;
  out.bit_exact = r.bit_exact;
  out.basis = from_word<Basis>(r.basis).value_or(Basis::every_output);
  out.outputs_compared = r.outputs_compared;
  out.mismatched = r.mismatched;
  out.opaque_ops = r.opaque_ops;
  if (r.first_mismatch != kNone) out.first_mismatch = r.first_mismatch;
  out.differences = r.differences;
  out.failed_ops = r.failed_ops;
  if (r.elsewhere) out.elsewhere = {r.recorded_on, r.replayed_on, r.bound, r.distance, r.outside};
  return out;
}

Verdict diagnose(const Case& c, const Reproduction& reproduction, const std::string& snapshot,
                 const DiagnoseOptions& options) {
  Verdict v = verdict_of(c, reproduction, snapshot);
  try {
    judge(c, options, v);
  } catch (const std::exception& e) {
    v = verdict_of(c, reproduction, snapshot);
    v.explanation = "The diagnosis stopped: " + std::string(e.what()).substr(0, 300);
    v.not_tested.push_back("everything after that");
    if (!v.found) v.unseen.ops = static_cast<std::int64_t>(c.doc().ops.size());  // nobody knows which were
  }
  v.ranks = find_ranks(c, snapshot);
  return v;
}

}  // namespace nanquest
