#include "replay/diff/comparison.h"

#include <algorithm>
#include <exception>
#include <map>
#include <optional>
#include <set>

#include "probe/trace/names.h"
#include "replay/diff/align.h"
#include "replay/diff/ends.h"
#include "replay/diff/formats.h"
#include "replay/diff/limits.h"
#include "replay/diff/others.h"
#include "replay/diff/outside.h"
#include "replay/diff/passed_numbers.h"
#include "replay/diff/reason.h"

namespace nanquest::diff {
namespace {

bool is_garbage(const OpRow& op) {
  return (op.flags & kOpUninitialised) != 0;
}

class Comparison {
 public:
  Comparison(const Replayer& a, const Replayer& b, const Settings& settings, Precision precision)
      : a_(a),
        b_(b),
        settings_(settings),
        precision_(precision),
        graph_a_(a.doc()),
        graph_b_(b.doc()),
        alignment_(align(graph_a_, graph_b_)),
        steps_{a, b, graph_a_, graph_b_, alignment_, precision},
        edits_(precision),
        edits_of_b_(precision) {}

  Report result() && {
    std::vector<OnlyEnd> only;
    ends_ = ends_of(graph_a_, graph_b_, only);
    for (const OnlyEnd& end : only) report_.notes.push_back(sentence(end, end.of_a ? "A" : "B"));
    count();
    if (!report_.same_program) return std::move(report_);
    limits_.emplace(steps_, settings_, report_.formats.has_value(), ends_);
    say("comparing");
    list_operations();
    const Pass as_recorded = pass(Edits(precision_), Edits(precision_), false);
    report_.ends = judge_ends(ends_, as_recorded.ends_a, as_recorded.ends_b, limits_->of_ends());
    if (outside(); divided_differently_ && all_agree(report_.ends)) {
      report_.findings.clear();
      report_.complete = true;
      report_.notes.push_back("the batch is divided differently: what both steps leave behind was compared");
      return std::move(report_);
    }
    for (int i = 0; i < settings_.most_repairs; ++i) {
      const Pass now = pass(edits_, edits_of_b_, true);
      if (report_.findings.empty()) report_.equal_pairs = now.equal;
      if (!now.first) {
        const std::vector<Group> left = judge_ends(ends_, now.ends_a, now.ends_b, limits_->of_ends());
        report_.complete = all_agree(left);
        if (report_.findings.empty() && !report_.complete) add_end(left);
        break;
      }
      if (is_from_others(steps_, now.first->pair) && !took_from_others_) {
        take_from_others(*now.first);
        continue;
      }
      say("looking at op " + std::to_string(now.first->pair.a.row()));
      if (!add(find_reason(steps_, *now.first, edits_, edits_of_b_))) break;
    }
    const auto lines = differing_numbers(steps_, report_.findings);
    report_.notes.insert(report_.notes.end(), lines.begin(), lines.end());
    return std::move(report_);
  }

 private:
  struct Pass {
    std::optional<FirstBeyond> first;
    std::int64_t equal = 0;
    std::vector<at::Tensor> ends_a, ends_b;
  };
  struct Stop : std::exception {};

  void say(const std::string& what) const {
    if (settings_.say) settings_.say(what);
  }

  /// False if there are enough.
  bool add(Finding finding) {
    for (Finding& other : report_.findings)
      if (is_same(finding, other)) return ++other.places > 0;
    if (static_cast<int>(report_.findings.size()) >= settings_.most_findings) return false;
    const OpId forward = finding.a < 0 ? OpId{} : graph_a_.forward_of(OpId{finding.a});
    for (std::size_t i = 0; forward && i < report_.findings.size(); ++i)
      if (report_.findings[i].a == forward.row()) finding.follows = static_cast<std::int32_t>(i);
    report_.findings.push_back(std::move(finding));
    return true;
  }

  void count() {
    report_.step_a = a_.doc().step, report_.step_b = b_.doc().step;
    report_.ops_a = static_cast<std::int64_t>(graph_a_.ops().size());
    report_.ops_b = static_cast<std::int64_t>(graph_b_.ops().size());
    report_.in_common = static_cast<std::int64_t>(alignment_.pairs.size());
    report_.share = alignment_.share();
    report_.same_program = report_.share >= settings_.least_share || is_one_model(graph_a_, graph_b_, ends_);
    divided_differently_ = micro_batches(a_.doc()) != micro_batches(b_.doc());
    for (const OpPair& pair : alignment_.pairs)
      if (!is_garbage(graph_a_.op(pair.a)) && is_comparable(pair)) pairs_.push_back(pair);
    report_.formats = formats_of(graph_a_, graph_b_, pairs_);
  }

  /// Without distances.
  void list_operations() {
    const auto row = [](const TraceGraph& graph, OpId op) {
      ComparedOp made;
      made.op = graph.op(op).name;
      made.module = plain_path(graph.module_of(op));
      made.phase = phase_name(graph.op(op).phase);
      return made;
    };
    std::set<OpId> left(alignment_.only_b.begin(), alignment_.only_b.end());
    const auto add_of_b = [&](std::set<OpId>::iterator end) {
      for (auto b = left.begin(); b != end; b = left.erase(b)) {
        report_.operations.push_back(row(graph_b_, *b));
        report_.operations.back().b = b->row();
      }
    };
    for (const OpId a : graph_a_.ops()) {
      const OpId b = alignment_.of_a[a];
      if (b) add_of_b(left.lower_bound(b));
      report_.operations.push_back(row(graph_a_, a));
      ComparedOp& both = report_.operations.back();
      both.a = a.row(), both.b = b ? b.row() : -1;
      place_of_[a.row()] = report_.operations.size() - 1;
    }
    add_of_b(left.end());
  }

  /// What the pair made in both as recorded: the first value beyond rounding, as a finding has it, else the
  /// farthest.
  void note(const OpPair& pair, const Apart& found, const Apart& limit, bool is_beyond) {
    const auto place = place_of_.find(pair.a.row());
    if (place == place_of_.end()) return;
    ComparedOp& op = report_.operations[place->second];
    const bool farther = !op.distance || found.whole > op.distance->found;
    if (!op.beyond && (is_beyond || farther)) op.distance = {found.whole, limit.whole};
    op.beyond = op.beyond || is_beyond;
  }

  /// They write values of the same shapes.
  bool is_comparable(const OpPair& pair) const {
    const auto a = graph_a_.written(pair.a), b = graph_b_.written(pair.b);
    return !a.empty() && std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](TensorId l, TensorId r) {
      return static_cast<bool>(l) == static_cast<bool>(r) &&
             (!l || graph_a_.tensor(l).sizes == graph_b_.tensor(r).sizes);
    });
  }

  /// What other ranks gave may follow from the differences so far, which they have too; if there are none, it
  /// is a finding.
  void take_from_others(const FirstBeyond& first) {
    took_from_others_ = true;
    const bool follows = std::any_of(report_.findings.begin(), report_.findings.end(), [](const Finding& f) {
      return f.kind != Kind::batch && f.kind != Kind::state;
    });
    put_in_results_of_others(steps_, pairs_, edits_);
    if (follows) {
      report_.notes.push_back("results of collectives differ from " + words_of(graph_a_, first.pair.a) +
                              " on; what the other ranks gave is not known here, so B's were put into A");
      return;
    }
    Finding finding = at_op(steps_, first.pair.a);
    finding.kind = Kind::ranks;
    finding.distance = {first.found.whole, first.limit.whole};
    finding.inputs_agree = true;
    (void)add(std::move(finding));
  }

  /// Something that the step leaves differs, but no op that both have does.
  void add_end(const std::vector<Group>& groups) {
    const auto group =
        std::find_if(groups.begin(), groups.end(), [](const Group& g) { return g.differ > 0; });
    if (group == groups.end()) return;
    Finding finding;
    finding.name = group->name + ": " + group->first;
    finding.distance = group->distance;
    finding.places = group->differ;
    report_.findings.push_back(std::move(finding));
  }

  /// A and B, with what was put into them, side by side, up to the first value beyond rounding if `stop`.
  Pass pass(const Edits& in_a, const Edits& in_b, bool stop) {
    Pass result;
    const RunOptions left = in_a.options(), right = in_b.options();
    const auto compare = [&](const OpPair& pair, const std::vector<at::Tensor>& a,
                             const std::vector<at::Tensor>& b) {
      for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
        if (!a[i].defined() || !b[i].defined()) continue;
        const Apart found = apart(a[i], b[i]);
        if (stop && !found.any()) continue;
        const Apart limit = limits_->of(pair, static_cast<std::int32_t>(i));
        const bool is_beyond = beyond(found, limit, a[i].scalar_type(), b[i].scalar_type());
        if (!stop) note(pair, found, limit, is_beyond);
        if (!is_beyond || !stop) continue;
        result.first = FirstBeyond{pair, static_cast<std::int32_t>(i), found, limit};
        throw Stop();
      }
      ++result.equal;
    };
    try {
      LockstepResult runs = lockstep({&a_, &left, places(ends_, &End::a)},
                                     {&b_, &right, places(ends_, &End::b)}, pairs_, compare);
      result.ends_a = std::move(runs.wanted_a), result.ends_b = std::move(runs.wanted_b);
    } catch (const Stop&) {  // the rest does not matter
    }
    return result;
  }

  /// What the steps were given: if it differs, B's is put into A, so that only what the steps do is left.
  /// In fp64 what one of them keeps in a narrower format is put into the other, although they agree within
  /// its rounding.
  void outside() {
    const Outside outside = compare_outside(a_, graph_a_, b_, graph_b_, alignment_);
    for (const bool batch : {true, false}) {
      Finding finding;
      finding.kind = batch ? Kind::batch : Kind::state;
      for (const OutsideDifference& d : outside.differ) {
        const bool differs = beyond(d.apart, {}, d.a, d.b);
        if (d.batch != batch || (!differs && precision_ == Precision::as_recorded)) continue;
        put_in(d);
        if (!differs) continue;
        divided_differently_ = divided_differently_ || (batch && d.apart.kind);
        if (finding.places++ == 0) finding.name = d.name, finding.distance = {d.apart.whole, 0};
      }
      if (finding.places > 0) report_.findings.push_back(finding);
    }
    for (const std::string& name : outside.only_a) report_.notes.push_back("only A has " + name);
    for (const std::string& name : outside.only_b) report_.notes.push_back("only B has " + name);
  }

  void put_in(const OutsideDifference& d) {
    const bool into_b = precision_ != Precision::as_recorded && is_narrower(d.a, d.b);
    const auto& [slot, row, own] = into_b ? d.in_b : d.in_a;
    if (slot) (into_b ? edits_of_b_ : edits_).outside(slot, row, into_b ? d.in_a.value : d.in_b.value);
  }

  const Replayer &a_, &b_;
  const Settings& settings_;
  Precision precision_;
  TraceGraph graph_a_, graph_b_;
  Alignment alignment_;
  Steps steps_;
  std::vector<OpPair> pairs_;
  std::vector<End> ends_;
  std::optional<Limits> limits_;
  Edits edits_, edits_of_b_;
  std::map<std::int32_t, std::size_t> place_of_;  ///< an op of A in `report_.operations`
  bool took_from_others_ = false;
  bool divided_differently_ = false;  ///< other micro-batches, or a batch of another shape
  Report report_;
};

}  // namespace

Report compare_in(const Replayer& a, const Replayer& b, const Settings& settings, Precision precision) {
  return Comparison(a, b, settings, precision).result();
}

}  // namespace nanquest::diff
