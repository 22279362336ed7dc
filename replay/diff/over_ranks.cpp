#include "replay/diff/over_ranks.h"

#include <algorithm>
#include <exception>
#include <string>
#include <utility>

#include "probe/trace/collectives.h"
#include "replay/diff/formats.h"
#include "replay/diff/passed_numbers.h"
#include "replay/diff/rank_inputs.h"
#include "replay/diff/rank_reason.h"
#include "replay/diff/rank_steps.h"

namespace nanquest::diff {
namespace {

constexpr int kMostFindings = 4;

/// A mesh of several dimensions: collectives of some of the ranks.
bool is_in_groups(const SnapshotDoc& doc) {
  return std::any_of(doc.environment.begin(), doc.environment.end(), [&](const auto& entry) {
    if (!entry.first.starts_with(kProcessGroupKey)) return false;
    return std::count(entry.second.begin(), entry.second.end(), ' ') + 1 != doc.world_size;
  });
}

const Group* first_that_differs(const std::vector<Group>& ends) {
  const auto found = std::find_if(ends.begin(), ends.end(), [](const Group& g) { return g.differ > 0; });
  return found == ends.end() ? nullptr : &*found;
}

bool any_compared(const std::vector<Group>& ends) {
  return std::any_of(ends.begin(), ends.end(),
                     [](const Group& g) { return g.name != "loss" && g.compared > 0; });
}

/// What a loss is on each rank is the program's choice; what it does to the weights is not.
bool is_alike(const std::vector<Group>& ends) {
  return std::all_of(ends.begin(), ends.end(),
                     [](const Group& g) { return g.name == "loss" || g.differ == 0; });
}

class OverRanks {
 public:
  OverRanks(const Replayer& one, const std::vector<Replayer>& ranks, bool a_is_many, const Settings& settings)
      : one_(one), ranks_(ranks), a_is_many_(a_is_many), settings_(settings), steps_(one, ranks) {}

  /// The report; within this class A is the step of one rank, but for what is said.
  Result<Report> result() && {
    Result<Report> report = compare();
    if (!report || !a_is_many_) return report;
    std::swap(report->step_a, report->step_b);
    std::swap(report->ops_a, report->ops_b);
    for (Finding& f : report->findings) std::swap(f.a, f.b), std::swap(f.in_a, f.in_b);
    return report;
  }

 private:
  Result<Report> compare() {
    count();
    if (!report_.same_program) return std::move(report_);
    if (const auto formats = formats_of(steps_.graph(), steps_.graph_of_first(), steps_.alignment().pairs))
      return Error{ErrorCode::usage,
                   "one computes in " + formats->in_a + " and the other in " + formats->in_b + ", first " +
                       formats->first + ": over ranks it is not known how far rounding brings them apart",
                   "record both in one format"};
    say("changing last bits in " + side(true));
    steps_.look_at_rounding(settings_.perturbations);
    Given given = compare_given(one_, ranks_);
    report_.findings = std::move(given.differ);
    samples_ = given.samples;
    say("comparing");
    RankPass pass = steps_.run(Edits(), samples_);
    report_.ends = pass.ends;
    report_.notes.insert(report_.notes.end(), pass.left_out.begin(), pass.left_out.end());
    if (!any_compared(pass.ends))
      return Error{ErrorCode::usage, "the values of the ranks can't be put together: their shapes do not fit",
                   "compare rank by rank: nanquest diff FILE_A FILE_B"};
    const bool same_given = report_.findings.empty();
    if (is_alike(pass.ends)) {
      report_.complete = same_given;
      if (first_that_differs(pass.ends))
        report_.notes.emplace_back("neither the mean nor the sum of the ranks' losses is that of one rank");
    } else if (same_given) {  // else all differences may follow from what they were given
      find(std::move(pass));
    }
    return std::move(report_);
  }

  /// What the report calls the step of one rank (`of_one`), and that of several.
  std::string side(bool of_one) const { return of_one != a_is_many_ ? "A" : "B"; }

  void say(const std::string& what) const {
    if (settings_.say) settings_.say(what);
  }

  void count() {
    report_.step_a = one_.doc().step, report_.step_b = ranks_.front().doc().step;
    report_.ops_a = static_cast<std::int64_t>(steps_.graph().ops().size());
    report_.ops_b = static_cast<std::int64_t>(steps_.graph_of_first().ops().size());
    report_.in_common = static_cast<std::int64_t>(steps_.alignment().pairs.size());
    report_.share = steps_.alignment().share();
    report_.same_program = report_.share >= settings_.least_share || steps_.ends("gradients") > 0;
    for (const OnlyEnd& end : steps_.only()) report_.notes.push_back(sentence(end, side(end.of_a)));
    Ranks& over = report_.ranks.emplace();
    over.a_is_many = a_is_many_;
    for (const Replayer& rank : ranks_) over.many.push_back(rank.doc().rank);
  }

  void find(RankPass pass) {
    const Steps steps{one_, ranks_.front(), steps_.graph(), steps_.graph_of_first(), steps_.alignment()};
    Edits edits;
    if (std::any_of(ranks_.begin(), ranks_.end(), [](const Replayer& r) { return is_in_groups(r.doc()); })) {
      report_.notes.emplace_back("the ranks work in several groups: only what the steps leave was compared");
      return add_end(pass);
    }
    for (int i = 0; i < kMostFindings; ++i) {
      report_.complete = is_alike(pass.ends);
      if (report_.complete) return;
      const auto first = first_not_made_up(steps, pass.made, pass.ends);
      if (!first) return add_end(pass);
      Finding finding = at_op(steps, OpId{first->place.op});
      finding.inputs_agree = first->inputs_agree;
      finding.distance = {pass.made.at(first->place).apart.whole, steps_.limit(first->place).whole};
      if (!first->is_found && try_number(steps, first->place, edits, finding, pass)) {
        add(std::move(finding));
        continue;
      }
      finding.kind = Kind::ranks;
      finding.name = first->text;
      explain_by_shares(pass, finding);
      return add(std::move(finding));
    }
  }

  /// No op makes the difference: it is what the steps leave.
  void add_end(const RankPass& pass) {
    const Group* differs = first_that_differs(pass.ends);
    if (!differs) return;
    Finding finding;
    finding.kind = Kind::ranks;
    finding.name = differs->name + ": " + differs->first + ": " + std::string(kNotMadeUp);
    finding.distance = differs->distance;
    finding.places = differs->differ;
    explain_by_shares(pass, finding);
    add(std::move(finding));
  }

  void add(Finding finding) {
    for (Finding& other : report_.findings)
      if (is_same(finding, other)) return void(++other.places);
    report_.findings.push_back(std::move(finding));
  }

  /// The numbers that the program passed to this op, and that are others in B, are put into A one by one; if
  /// the ranks' values then make up its value, that is the finding, and it stays in A.
  bool try_number(const Steps& steps, const WrittenPlace& place, Edits& edits, Finding& finding,
                  RankPass& pass) const {
    for (const NumberGroup& group : number_groups(steps)) {
      const bool is_here = std::any_of(group.places.begin(), group.places.end(),
                                       [&](const auto& p) { return p.first.row() == place.op; });
      if (!is_here) continue;
      Edits more = edits;
      for (const auto& [at, number] : group.places) more.argument(at, number.position, number.value);
      RankPass next = steps_.run(more, samples_);
      if (!next.made.at(place).fits()) continue;
      finding.kind = Kind::argument;
      finding.name = group.name, finding.in_a = group.in_a, finding.in_b = group.in_b;
      finding.places = static_cast<std::int64_t>(group.places.size());
      finding.shown = true;
      if (a_is_many_) finding.how = "with A's " + group.name + " B gives A's value";
      edits = std::move(more), pass = std::move(next);
      return true;
    }
    return false;
  }

  void explain_by_shares(const RankPass& pass, Finding& finding) const {
    const bool differ = std::any_of(pass.ends.begin(), pass.ends.end(),
                                    [](const Group& g) { return g.name == "gradients" && g.differ > 0; });
    const Shares::Fitted fitted = pass.shares.fit();
    const double limit = std::max(1e-6, 8 * steps_.limit_of("gradients"));
    if (!differ || fitted.of_rank.empty() || fitted.apart > limit ||
        2 * pass.shares.weights() < steps_.ends("gradients"))
      return;
    finding.how = words_of_shares(fitted.of_rank);
    finding.shown = true;
  }

  const Replayer& one_;
  const std::vector<Replayer>& ranks_;
  bool a_is_many_;
  const Settings& settings_;
  RankSteps steps_;
  std::int64_t samples_ = 0;
  Report report_;
};

}  // namespace

Result<Report> compare_over_ranks(const Replayer& one, const std::vector<Replayer>& ranks, bool a_is_many,
                                  const Settings& settings) {
  try {
    return OverRanks(one, ranks, a_is_many, settings).result();
  } catch (const std::exception& e) {
    return Error{ErrorCode::bad_file, std::string("the steps can't be compared: ") + e.what(),
                 "nanquest-replay verify FILE shows whether each can be run"};
  }
}

}  // namespace nanquest::diff
