#include "replay/cause/fixes.h"

#include <algorithm>

#include "replay/case/values.h"
#include "replay/cause/arbiter.h"
#include "replay/cause/culprit.h"
#include "replay/cause/protect.h"
#include "replay/cause/remaining.h"
#include "replay/lab/nearness.h"

namespace nanquest {
namespace {

/// One change that made the step finite.
struct Helped {
  Change change;
  bool placebo_failed = false;
};

/// The same change is made for at most this many ops that are to blame together.
constexpr std::size_t kMaxTogether = 16;

class Search {
 public:
  Search(const Case& c, const Finding& finding, const Progress& progress)
      : case_(c), finding_(finding), progress_(progress) {}

  FixSearch run() {
    for (const Change& change : finding_.wanted)
      if (change.kind != ChangeKind::hyperparameter || !helped_with(ChangeKind::hyperparameter))
        try_change(change);
    for (const Change& change : finding_.wanted)
      for (const Change& further : change.otherwise)
        if (helped_.empty()) try_change(further);
    if (helped_.empty()) for_all_to_blame();
    if (helped_.empty()) with_what_remains();
    // If nothing that the cause asks for helps, a wider format still may.
    if (finding_.precision || helped_.empty()) precision();
    choose();
    return std::move(out_);
  }

 private:
  /// If several ops are to blame together, the change must be made to each of them.
  void for_all_to_blame() {
    const std::vector<Suspect>& set = case_.blame().set;
    if (set.size() < 2 || set.size() > kMaxTogether) return;
    std::vector<Change> all = finding_.wanted;
    for (const Suspect& suspect : set) {
      if (suspect.op.row() == case_.op_index() || !case_.has_time()) continue;
      SnapshotDoc doc = case_.doc();
      blame_suspect(doc, suspect);
      const auto other = finding_of(finding_.label, case_.with(std::move(doc)));
      if (!other) return;
      all.resize(std::min(all.size(), other->wanted.size()));
      for (std::size_t i = 0; i < all.size(); ++i) {
        const bool same = all[i].text == other->wanted[i].text;
        all[i] = together(std::move(all[i]), other->wanted[i]);
        if (same) all[i].text += ", and the same for op " + std::to_string(suspect.op.row());
      }
    }
    for (const Change& change : all) try_change(change);
  }

  /// The change may mend what it is for, and the step fails elsewhere, for another reason: then with what the
  /// cause of that asks for, and so on.
  void with_what_remains() {
    if (finding_.wanted.empty()) return;
    Change all = finding_.wanted.front();
    const ChangeKind kind = all.kind;
    if (kind != ChangeKind::op && kind != ChangeKind::data) return;
    for (std::size_t made = 1; made < kMaxTogether && case_.has_time(); ++made) {
      const auto rest = remaining(case_, all);
      if (!rest) return;
      const Finding next = find_cause(*rest).finding;
      if (next.label == Label::unknown || next.wanted.empty()) return;
      Change also = next.wanted.front();
      // What zeros in place of data break is not what the data broke.
      if (kind == ChangeKind::data && also.kind != kind) return;
      if (also.kind == ChangeKind::op) also.text += " (op " + std::to_string(rest->op_index()) + ")";
      all = together(std::move(all), also);
      if (try_change(all)) return;
    }
  }

  /// True if the step is finite with it.
  bool try_change(const Change& change) {
    if (!case_.has_time()) return false;
    if (progress_) progress_("trying: " + change.text);
    const TrialResult result = run_change(case_, change);
    out_.tried.push_back({change.text, change.kind, result});
    if (result == TrialResult::failed && !case_.has_bad_as_recorded())  // otherwise one line for all
      out_.notes.push_back("\"" + change.text + "\": an op has no kernel for it, so this was not tested");
    if (result != TrialResult::finite || !is_near(change)) return false;
    // If a smaller change helps as well, this one is not a fix to prove.
    if (!minimal({change})) {
      helped_.push_back({change});
      return true;
    }
    helped_.push_back(
        {change, change.kind == ChangeKind::precision ? halves_agree(change) : placebo_fails(change)});
    return true;
  }

  /// An irrelevant change of the same size was run and did not help.
  bool placebo_fails(const Change& change) {
    if (change.placebo.empty()) {
      out_.notes.push_back("\"" + change.text +
                           "\": the trace offers no irrelevant change of that size, so there was no placebo");
      return false;
    }
    const TrialResult placebo = run_change(case_, change.placebo[0]);
    out_.tried.push_back({change.placebo_text, ChangeKind::placebo, placebo});
    return placebo == TrialResult::non_finite;
  }

  /// A wider format gives range and precision. If one of them was missing, it helps alone; the other costs
  /// the same and must not help.
  bool halves_agree(const Change& change) {
    const Change range = half_of(case_, change, FormatHalf::range);
    const Change precision = half_of(case_, change, FormatHalf::precision);
    const TrialResult with_range = run_change(case_, range), with_precision = run_change(case_, precision);
    const bool by_range = with_range == TrialResult::finite,
               by_precision = with_precision == TrialResult::finite;
    const bool needs_range = finding_.needs ? *finding_.needs == FormatHalf::range : by_range;
    const auto report = [&](const Change& half, TrialResult result, bool needed) {
      out_.tried.push_back({half.text, needed ? ChangeKind::precision : ChangeKind::placebo, result});
    };
    report(range, with_range, needs_range);
    report(precision, with_precision, !needs_range);
    if (by_range == by_precision)
      out_.notes.push_back("\"" + change.text +
                           "\": whether it is the wider range or the finer precision that helps");
    if (by_range && by_precision && overflows_inside()) {
      Change other = change;
      add_precision_placebo(case_, other, case_.op_index(), wide());
      return placebo_fails(other);
    }
    return needs_range ? by_range && with_precision == TrialResult::non_finite
                       : by_precision && with_range == TrialResult::non_finite;
  }

  bool helped_with(ChangeKind kind) const {
    return std::any_of(helped_.begin(), helped_.end(),
                       [&](const Helped& h) { return h.change.kind == kind; });
  }

  /// The culprit's correct result fits its format; an intermediate value did not (a norm's squares). The
  /// halves of a format are applied to results, so they can't show what the inside lacks.
  bool overflows_inside() const {
    if (!case_.op()) return false;
    const OpValues& values = case_.values(case_.op_index());
    const at::Tensor out = values.bad_output();
    const auto exact = evaluate(*case_.op(), values.arguments, Precision::fp64);
    const auto limit = out.defined() && out.is_floating_point() ? format_max(out) : std::nullopt;
    return exact && limit && all_finite(*exact) && finite_amax(*exact) <= *limit;
  }

  Precision wide() const { return wider(case_, works_in_16_bits(case_)); }

  void precision() {
    const Precision wide = this->wide();
    // A failure that does not come back here can't be seen to disappear.
    if (case_.healthy(case_.whole(Precision::as_recorded))) {
      out_.notes.push_back("changes of the step: the harm doesn't come back in this replay");
      return;
    }
    // If the whole step is not finite with it, no part of it is tried: a part gets the other parts' values.
    if (!case_.healthy(case_.whole(wide))) {
      out_.tried.push_back({"the whole step in " + precision_text(wide), ChangeKind::precision,
                            case_.result(case_.whole(wide))});
      return;
    }
    const std::int32_t op = case_.op_index();
    if (op != kNone && (try_change(op_in(case_, op, wide)) || try_change(neighbours_in(case_, op, wide))))
      return whole(wide);
    for (std::string path = case_.module_of(op); !path.empty();) {
      if (try_change(module_in(case_, path, wide))) return whole(wide);
      const std::size_t dot = path.rfind('.');
      path = dot == std::string::npos ? "" : path.substr(0, dot);
    }
    whole(wide);
    // The whole step helps, and nothing smaller: some of its ops are enough.
    if (helped_.empty() || !minimal({step_in(case_, wide)})) return;
    if (progress_) progress_("which ops must be protected together");
    if (const std::vector<std::int32_t> ops = protected_set(case_, wide); !ops.empty())
      try_change(set_in(case_, ops, wide));
  }

  void whole(Precision wide) {
    if (output_type() == DType::float16) out_.finite_in_bf16 = try_change(step_in(case_, Precision::bf16));
    try_change(step_in(case_, wide));
  }

  DType output_type() const {
    const OpRow* op = case_.op();
    return !op || op->written_count == 0 ? DType::uint8
                                         : case_.doc().tensors[case_.doc().written[op->first_written]].dtype;
  }

  /// Nothing smaller that was tried, of whatever kind, made the step finite.
  bool minimal(const Helped& h) const {
    return std::none_of(helped_.begin(), helped_.end(),
                        [&](const Helped& other) { return other.change.size < h.change.size; });
  }

  /// Changes of formats alone share their reference.
  const RunResult& reference(const RunOptions& change) {
    const TraceEdit& edit = change.edit;
    if (!edit.slot_edit.empty() || !edit.op_edit.empty() || !edit.output_edit.empty())
      return other_reference_.emplace(case_.run(in_fp64(case_.graph(), change)));
    if (!reference_) reference_ = case_.run(in_fp64(case_.graph(), change));
    return *reference_;
  }

  /// The step is not only finite with it, but close enough to the changed step in fp64.
  bool is_near(const Change& change) {
    RunOptions here = change.options;
    here.keep = case_.doc().gradients;
    const auto distance = [&](const RunResult& run, const RunResult& exact) {
      return nearness(case_.graph(), case_.whole(Precision::as_recorded), run, exact);
    };
    const Nearness n = distance(case_.run(here), reference(change.options));
    if (!n.known) {
      out_.notes.push_back("how near the step with \"" + change.text +
                           "\" is to fp64: it isn't finite there, or can't be run");
      return true;
    }
    const NearnessLimits limits = nearness_limits(case_.graph());
    std::string why = why_not_near(n, limits);
    // Where a number rounds, or which of two is larger, may be decided otherwise in fp64.
    if (Choices choices(case_.graph()); !why.empty() && choices.any() && case_.has_time()) {
      choices.keep_in(here);
      const RunResult run = case_.run(here);
      const RunOptions exact = choices.put_into(in_fp64(case_.graph(), change.options));
      why = why_not_near(distance(run, case_.run(exact)), limits);
    }
    if (!why.empty()) out_.tried.back().not_a_fix = why;
    return why.empty();
  }

  void choose() {
    std::stable_sort(helped_.begin(), helped_.end(), [](const Helped& a, const Helped& b) {
      return std::pair(a.change.price, a.change.size) < std::pair(b.change.price, b.change.size);
    });
    for (const Helped& h : helped_) {
      if (!h.placebo_failed || !minimal(h)) continue;
      out_.fix = Fix{h.change.text, finding_.advice, Scope::step, true, true, true};
      out_.edit = h.change.edit;
      return;
    }
  }

  const Case& case_;
  const Finding& finding_;
  const Progress& progress_;
  std::vector<Helped> helped_;
  std::optional<RunResult> reference_, other_reference_;
  FixSearch out_;
};

}  // namespace

FixSearch search_fixes(const Case& c, const Finding& finding, const Progress& progress) {
  return Search(c, finding, progress).run();
}

}  // namespace nanquest
