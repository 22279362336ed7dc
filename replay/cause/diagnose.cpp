#include "replay/cause/diagnose.h"

#include <algorithm>

#include "probe/trace/lead_ops.h"
#include "probe/trace/samples.h"
#include "probe/trace/spike_note.h"
#include "replay/case/values.h"
#include "replay/cause/arbiter.h"
#include "replay/cause/cause.h"
#include "replay/cause/culprit.h"
#include "replay/cause/culprit_info.h"
#include "replay/cause/inside.h"
#include "replay/cause/loss_terms.h"
#include "replay/cause/opaque.h"
#include "replay/cause/precision.h"
#include "replay/cause/ranks.h"
#include "replay/cause/region.h"
#include "replay/cause/samples.h"
#include "replay/cause/source_patch.h"
#include "replay/cause/twin_facts.h"
#include "replay/cause/unwritten_state.h"
#include "replay/cause/written_outside.h"
#include "replay/lab/lab.h"
#include "replay/verdict/confidence.h"
#include "replay/verdict/numbers.h"
#include "replay/verdict/sentences.h"

namespace nanquest {
namespace {

constexpr const char* kWhichEarlierStep = "which earlier step wrote the bad value";

/// The fix as a patch of the program, or why there is none.
void add_patch(const Case& c, const FixSearch& search, Verdict& v) {
  if (!v.fix) return;
  const OpRow* op = search.edit ? c.row(search.edit->row) : nullptr;
  if (!op) {
    v.fix->no_patch = "the change that was tried is not one expression of the program";
    return;
  }
  SourcePatch patch = source_patch(*search.edit, stack_of(c, *op), v.snapshot);
  v.fix->patch = std::move(patch.diff);
  v.fix->no_patch = std::move(patch.none);
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
  // Values that are in every run can't be made harmless: that shows nothing about those before them.
  const bool shown = !c.blame().set.empty() || !c.has_bad_as_recorded();
  BlameInfo info{c.blame().tried && shown, {}, {}, c.blame().runs, {}};
  for (const Suspect& suspect : c.blame().set) info.set.push_back(blamed(c, suspect));
  for (const Suspect& suspect : c.blame().intended) info.intended.push_back(blamed(c, suspect));
  for (const OpId op : c.blame().assumed) info.assumed.push_back(blamed(c, {op, {}, {}}));
  return info;
}

/// Everything of a verdict that is known before anything is tried.
Verdict verdict_of(const Case& c, const Reproduction& reproduction, const std::string& snapshot) {
  Verdict v;
  v.snapshot = snapshot;
  v.step = c.doc().step;
  v.rank = c.doc().rank;
  v.reproduction = reproduction;
  v.found = !c.culprit().value.empty();
  if (!v.found) v.on_record = on_record_text(c.doc());
  if (!v.found) return v;
  v.origin = from_word<Origin>(c.culprit().origin).value_or(Origin::op);
  v.culprit = culprit_info(c, c.op_index());
  v.blame = blame_info(c);
  return v;
}

/// With the batch of the last healthy step in its place the step fails in the same way.
bool fails_on_other_batch(const Case& c) {
  return c.twin() && c.twin()->health() == TwinRun::Health::harmed;
}

/// The search for samples ends after this many runs.
constexpr int kMaxSampleRuns = 48;

void add_samples(const Case& c, const Finding& finding, const DiagnoseOptions& options, Verdict& v) {
  v.batch = batch_size(c.doc());
  v.poison = finding.poison;
  if (v.poison.empty() && options.find_samples && options.try_fixes && options.crash.empty() &&
      v.origin == Origin::op && v.batch >= 2) {
    if (fails_on_other_batch(c)) {
      v.evidence.push_back(
          {"samples", "the batch of the step before fails as well, so no samples were exchanged"});
    } else if (c.has_time()) {
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
    if (std::string id = sample_id(c.doc(), s); !id.empty()) v.poison_ids.push_back(std::move(id));
}

/// Another format for the whole step comes first if it was tried and is sufficient.
void add_bf16_advice(const Finding& finding, const FixSearch& search, Verdict& v) {
  const bool curable = v.precision.verdict == PrecisionVerdict::curable;
  if (search.finite_in_bf16 && curable && !v.advice.empty()) v.advice = finding.bf16_advice + v.advice;
}

/// The advice to keep the op in fp32 gives way to what was seen to help where the op alone was not enough.
void mend_format_advice(const Case& c, Verdict& v) {
  const std::size_t at = v.advice.find(kKeepOpInFp32);
  if (at == std::string::npos || !c.op()) return;
  const std::string alone = op_in(c, c.op_index(), Precision::fp32).text;
  const auto tried = std::find_if(v.counterfactuals.begin(), v.counterfactuals.end(),
                                  [&](const Counterfactual& t) { return t.change == alone; });
  if (tried == v.counterfactuals.end() || (tried->result == TrialResult::finite && tried->not_a_fix.empty()))
    return;
  const auto helped =
      std::find_if(v.counterfactuals.begin(), v.counterfactuals.end(), [](const Counterfactual& t) {
        return t.kind == ChangeKind::precision && t.result == TrialResult::finite && t.not_a_fix.empty();
      });
  if (helped == v.counterfactuals.end()) return;
  v.advice.replace(at, std::string_view(kKeepOpInFp32).size(),
                   "Keep more than this op in fp32 (alone it does not help; what was tried says how much)");
}

/// "c10d::allreduce_ (op 94) and 3 more".
std::string collectives_text(const std::vector<Blamed>& collectives) {
  const std::string more =
      collectives.size() > 1 ? " and " + std::to_string(collectives.size() - 1) + " more" : "";
  return op_words(collectives.front().op, "", collectives.front().index) + more;
}

void add_not_tested(const Case& c, const FixSearch& search, const DiagnoseOptions& options, Verdict& v) {
  for (const std::string& note : search.notes) v.not_tested.push_back(note);
  if (v.fix)
    v.not_tested.push_back(
        "whether training stays finite and learns for 64 more steps with the fix: this file holds one step");
  if (v.origin == Origin::parameter || v.origin == Origin::buffer || v.origin == Origin::optimizer_state)
    v.not_tested.emplace_back(kWhichEarlierStep);
  if (!v.reproduction.bit_exact)
    v.not_tested.push_back("that this replay is the same event: it did not come back bit for bit");
  if (!options.crash.empty())
    v.not_tested.push_back("whatever runs the step again: a kernel crashed (" + options.crash + ")");
  else if (!c.has_time())
    v.not_tested.push_back(Lab::stopped() ? "what was left to try when it was stopped"
                                          : "what " + number_text(c.lab()->seconds()) +
                                                " seconds left no time for (more: --budget SECONDS)");
  add_opaque(c, v);
  if (!v.blame.assumed.empty())
    v.not_tested.push_back("what the other ranks gave to " + collectives_text(v.blame.assumed) +
                           ": in the runs that looked for what is to blame, this rank's own part stood for "
                           "everybody's where its own had been bad");
  if (!v.fix && (v.blame.set.empty() || !v.blame.assumed.empty()) && c.has_bad_as_recorded() &&
      c.doc().world_size > 1)
    v.not_tested.push_back(
        "what would have kept the step well: what collectives brought is as recorded in the file of one "
        "rank. "
        "With the files of all ranks they are done anew: nanquest-replay ranks RUN_DIR");
}

/// What the runs in other formats say against the cause.
void hold_against_formats(const Finding& finding, Verdict& v) {
  if (v.claims.empty() || v.claims.front().cause != v.cause || v.origin != Origin::op || finding.not_computed)
    return;
  const bool finite =
      v.precision.fp32 == PrecisionResult::finite || v.precision.fp64 == PrecisionResult::finite;
  const bool all_run =
      v.precision.fp32 != PrecisionResult::not_run && v.precision.fp64 != PrecisionResult::not_run;
  std::vector<std::string>& against = v.claims.front().facts_against;
  if (finite && !finding.precision && !finding.needs && finding.depth < Depth::source)
    against.emplace_back("the step is finite in a wider format, which has no part in this cause");
  if (all_run && !finite && finding.depth == Depth::size)
    against.emplace_back("the step is not finite in fp64 either, which should hold the value");
}

void judge(const Case& c, const DiagnoseOptions& options, Verdict& v) {
  add_unseen(c, v);
  if (!v.found && (find_unwritten_state(c, v) || find_written_outside(c, v))) return settle_confidence(v);
  if (!v.found) {
    v.explanation = v.unseen.any() ? "No harmful NaN or Inf was seen, but not every value could be looked at."
                                   : "The step holds no harmful NaN or Inf.";
    return;
  }
  v.phase = came_from_outside(v.origin) ? Phase::input : c.op() ? c.op()->phase : c.culprit().phase;
  if (options.progress) options.progress("reading the culprit's recorded values");
  Decision decision = find_cause(c, options.left_out);
  const Finding& finding = decision.finding;
  v.claims = std::move(decision.claims);
  v.cause = finding.label;
  v.explanation = finding.explanation;
  v.evidence = finding.evidence;
  v.source = finding.source;
  v.advice = finding.advice;
  v.origin = finding.origin.value_or(v.origin);
  const bool runs = options.crash.empty();
  if (finding.op == kNone && runs) add_inside(c, v);
  add_loss_terms(c, v);
  if (finding.phase) v.phase = finding.phase;
  if (finding.op != kNone) v.culprit = culprit_info(c, finding.op);
  if (v.culprit.index != kNone && v.culprit.index < lead_ops(c.doc()))
    v.explanation +=
        " The program ran this operation between the last update and the step's first forward pass.";
  if (runs) {
    if (options.progress && c.twin() && c.twin()->there()) options.progress("the step on a healthy batch");
    add_twin_facts(c, finding, v);
    if (options.progress) options.progress("the step in fp32 and fp64");
    judge_precision(c, finding.not_computed, v);
    hold_against_formats(finding, v);
  }
  FixSearch search;
  if (runs && options.try_fixes) search = search_fixes(c, finding, options.progress);
  v.counterfactuals = std::move(search.tried);
  v.fix = search.fix;
  mend_format_advice(c, v);
  add_bf16_advice(finding, search, v);
  if (v.fix)
    v.fix->advice = v.advice.empty() ? "What made this step finite: " + v.fix->change + "." : v.advice;
  add_patch(c, search, v);
  add_samples(c, finding, options, v);
  add_not_tested(c, search, options, v);
  if (runs) look_into_region(c, options, v);
  settle_confidence(v);
}

}  // namespace

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
    if (!v.found) v.unseen.ops = static_cast<std::int64_t>(c.doc().ops.size());  // unknown which ones
  }
  if (options.crash.empty()) v.ranks = find_ranks(c, snapshot);
  if (v.ranks && v.ranks->first && v.ranks->first->step >= 0) std::erase(v.not_tested, kWhichEarlierStep);
  if (const RankCulprit* const other = arrived(v) ? other_rank(v) : nullptr)
    v.advice =
        "The file of rank " + std::to_string(other->rank) + " has the cause: nanquest-replay " + other->file;
  return v;
}

}  // namespace nanquest
