#include "replay/trace/together.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <memory>
#include <set>
#include <stdexcept>

#include "probe/trace/collectives.h"
#include "replay/trace/environment.h"
#include "replay/trace/fsdp_copies.h"
#include "replay/trace/replayer_state.h"

namespace nanquest {
namespace {

using trace::Expected;
using trace::Given;

/// Moves no data between ranks: nothing to compute.
bool carries_nothing(const std::string& op) {
  return op == "c10d::barrier" || op == "c10d::monitored_barrier_";
}

/// The run of one rank.
class Walker {
 public:
  Walker(const Lane& lane, bool computed)
      : rank_(lane.rank), computed_(computed), impl_(lane.replayer->impl()) {
    options_.edit = lane.edit;
    options_.keep = impl_.doc().gradients;
    options_.keep.insert(options_.keep.begin(), impl_.doc().loss);
    options_.scan = lane.scan;
    {
      const trace::RunScope scope(impl_.doc());
      run_ = std::make_unique<trace::Run>(impl_, options_);
    }
    end_ = OpId{impl_.doc().ops.size()};
    for (OpId op{0}; op < end_; op = OpId{op.row() + 1})
      if (is_collective(get(impl_.doc(), op).name))
        if (const auto call = collective_call(impl_.doc(), op)) groups_.insert(call->group);
    advance();
  }

  std::int32_t rank() const { return rank_; }
  std::int32_t world_size() const { return impl_.doc().world_size; }
  /// The rank is at a collective, which has not run.
  bool waits() const { return op_ < end_; }
  OpId op() const { return op_; }
  const std::string& name() const { return get(impl_.doc(), op_).name; }
  const std::optional<CollectiveCall>& call() const { return call_; }
  const Given& given() const { return given_; }
  bool gave_bad() const { return gave_bad_; }
  /// Whether any of its collectives is of that group.
  bool uses(const std::string& group) const { return groups_.count(group) > 0; }
  /// How many collectives of this group it has passed.
  int number() const {
    const auto found = done_.find(call_ ? call_->group : "");
    return found == done_.end() ? 0 : found->second;
  }

  /// Runs the collective: compares its recorded results with the expected ones, which replace them in a run
  /// that continues with computed results.
  CollectivePart pass(const Expected* expected, std::string& why_not) {
    CollectivePart part;
    part.op = op_.row();
    part.gave_bad = gave_bad_;
    const auto own = options_.edit.output_edit.find(op_.row());
    const auto asked = own == options_.edit.output_edit.end() ? nullptr : own->second;
    options_.edit.output_edit[op_.row()] = [&](std::vector<at::Tensor>& written) {
      try {
        if (expected) compare(*expected, written, part);
      } catch (const std::exception& e) {
        why_not = e.what();
      }
      if (asked) asked(written);
      for (const at::Tensor& tensor : written)
        part.got_bad = part.got_bad || (tensor.defined() && trace::badness(tensor).any);
    };
    {
      const trace::RunScope scope(impl_.doc());
      run_->step(op_);
      run_->finish_op(op_);
    }
    options_.edit.output_edit.erase(op_.row());
    if (asked) options_.edit.output_edit[op_.row()] = asked;
    ++done_[call_ ? call_->group : ""];
    op_ = OpId{op_.row() + 1};
    advance();
    return part;
  }

  RunResult finish() {
    const trace::RunScope scope(impl_.doc());
    return run_->finish();
  }

 private:
  /// Runs to the next collective, or the end.
  void advance() {
    const trace::RunScope scope(impl_.doc());
    for (; op_ < end_; op_ = OpId{op_.row() + 1}) {
      const std::string& name = get(impl_.doc(), op_).name;
      if (is_collective(name) && !carries_nothing(name)) break;
      if (computed_ && trace::is_kept_copy(get(impl_.doc(), op_)) &&
          !options_.edit.output_edit.count(op_.row()))
        options_.edit.output_edit[op_.row()] = [this, op = op_](std::vector<at::Tensor>& written) {
          copy_again(op, written);
        };
      run_->step(op_);
      run_->finish_op(op_);
    }
    call_.reset();
    given_.clear();
    gave_bad_ = false;
    if (op_ < end_) collect();
  }

  /// For a copy that only FSDP has a kernel for. If it can't be done, the recorded result stays.
  void copy_again(OpId op, std::vector<at::Tensor>& written) try {
    trace::copy_as_fsdp(
        impl_.doc(), get(impl_.doc(), op), [this](TensorId row) { return run_->value(row); }, written);
  } catch (const std::exception&) {
  }

  /// Its input to the collective that it has reached.
  void collect() {
    call_ = collective_call(impl_.doc(), op_);
    if (!call_) return;
    for (const FlatRows& rows : call_->inputs) {
      std::vector<at::Tensor> parts;
      for (const TensorId row : rows) {
        at::Tensor value;
        try {
          value = run_->value(row);
        } catch (const std::exception&) {  // the file is missing
        }
        if (!value.defined()) break;
        gave_bad_ = gave_bad_ || trace::badness(value).any;
        parts.push_back(value.resolve_conj().resolve_neg().reshape({-1}));
      }
      given_.push_back(parts.size() == rows.size() ? at::cat(parts) : at::Tensor());
    }
  }

  void compare(const Expected& expected, std::vector<at::Tensor>& written, CollectivePart& part) {
    std::vector<at::Tensor> recorded;
    std::size_t entry = 0;
    for (const FlatRows& rows : call_->outputs) {
      std::vector<at::Tensor> parts;
      for (std::size_t i = 0; i < rows.size(); ++i, ++entry) {
        const at::Tensor& one = written.at(static_cast<std::size_t>(call_->written.at(entry)));
        if (!one.defined()) throw std::runtime_error("what it gave was not recorded");
        parts.push_back(one.reshape({-1}));
      }
      recorded.push_back(at::cat(parts));
    }
    part.matched = trace::hold_against(expected, recorded);
    if (!computed_) return;
    entry = 0;
    for (std::size_t item = 0; item < call_->outputs.size(); ++item) {
      std::int64_t from = 0;
      for (std::size_t i = 0; i < call_->outputs[item].size(); ++i, ++entry) {
        at::Tensor& one = written.at(static_cast<std::size_t>(call_->written.at(entry)));
        one.copy_(expected.values[item].narrow(0, from, one.numel()).view(one.sizes()));
        from += one.numel();
      }
    }
  }

  std::int32_t rank_;
  bool computed_;
  const Replayer::Impl& impl_;
  RunOptions options_;
  std::unique_ptr<trace::Run> run_;
  OpId op_{0}, end_;
  std::set<std::string> groups_;
  std::map<std::string, int> done_;
  std::optional<CollectiveCall> call_;
  Given given_;
  bool gave_bad_ = false;
};

class Together {
 public:
  Together(const std::vector<Lane>& lanes, GoOn go_on) {
    for (const Lane& lane : lanes)
      walkers_.push_back(std::make_unique<Walker>(lane, go_on == GoOn::with_computed));
  }

  TogetherRun run() {
    while (true) {
      Walker* first = nullptr;
      bool moved = false;
      for (const auto& walker : walkers_) {
        if (!walker->waits()) continue;
        if (!first) first = walker.get();
        if (const auto group = complete_group(*walker); !group.empty()) {
          perform(group);
          moved = true;
          break;
        }
      }
      if (!first) break;
      if (moved) continue;
      // A collective of an unsupported kind holds up the others.
      for (const auto& walker : walkers_)
        if (walker->waits() && !walker->call()) first = walker.get();
      pass_alone(*first, "the other ranks do not come to it: their collectives are others");
    }
    for (const auto& walker : walkers_) out_.results[walker->rank()] = walker->finish();
    return std::move(out_);
  }

 private:
  using Group = std::vector<Walker*>;

  /// Ranks that take part in a collective, by what its file says; otherwise those of all lanes that use a
  /// group of that name.
  std::vector<std::int32_t> members(const Walker& walker) const {
    const CollectiveCall& call = *walker.call();
    if (!call.ranks.empty()) return call.ranks;
    std::vector<std::int32_t> ranks;
    const bool everybody = call.group.empty() || call.group == "0" || call.size == walker.world_size();
    if (everybody)
      for (std::int32_t rank = 0; rank < walker.world_size(); ++rank) ranks.push_back(rank);
    else
      for (const auto& other : walkers_)
        if (other->uses(call.group)) ranks.push_back(other->rank());
    std::sort(ranks.begin(), ranks.end());
    return ranks;
  }

  /// The lanes of the walker's collective, in the group's order, if all have reached it; otherwise none.
  Group complete_group(const Walker& walker) const {
    Group group;
    if (!walker.call()) return group;
    for (const std::int32_t rank : members(walker)) {
      const auto found =
          std::find_if(walkers_.begin(), walkers_.end(), [&](const auto& w) { return w->rank() == rank; });
      if (found == walkers_.end()) continue;
      Walker& other = **found;
      if (!other.waits() || !other.call() || other.call()->group != walker.call()->group ||
          other.number() != walker.number() || other.name() != walker.name())
        return {};
      group.push_back(&other);
    }
    return group;
  }

  CollectiveRun begin(const Walker& walker) const {
    CollectiveRun made;
    made.name = walker.name();
    made.call = walker.call();
    if (!made.call) return made;
    made.ranks = members(walker);
    for (const std::int32_t rank : made.ranks)
      if (std::none_of(walkers_.begin(), walkers_.end(), [&](const auto& w) { return w->rank() == rank; }))
        made.missing.push_back(rank);
    const auto files = static_cast<std::int64_t>(walkers_.size());
    if (made.call->ranks.empty() && made.call->size > 0 &&
        made.call->size != static_cast<std::int64_t>(made.ranks.size()))
      made.why_not = "who is in group " + made.call->group + " is not known";
    else if (made.call->ranks.empty() && made.call->size == 0 && !made.call->group.empty() &&
             made.call->group != "0" && files < walker.world_size())
      made.why_not = "who is in group " + made.call->group + " is not known without all ranks' files";
    return made;
  }

  /// The result of each member of the group; empty, with the reason in `made`, if it can't be computed.
  std::vector<Expected> results(const Group& group, CollectiveRun& made) const {
    std::vector<Expected> expected;
    if (!made.why_not.empty()) return expected;
    CollectiveCall call = *made.call;
    std::vector<Given> given(made.ranks.size());
    for (const Walker* walker : group)
      given[static_cast<std::size_t>(place(made, walker->rank()))] = walker->given();
    if (!made.missing.empty()) {
      const bool root_is_there = call.pattern == Pattern::broadcast && call.root >= 0 &&
                                 static_cast<std::size_t>(call.root) < given.size() &&
                                 !given[static_cast<std::size_t>(call.root)].empty();
      if (!root_is_there) {
        made.why_not = "what " + std::string(made.missing.size() == 1 ? "rank " : "ranks ") +
                       numbers(made.missing) + " gave is not there";
        return expected;
      }
    }
    // Older files don't record how a reduction reduces: nearly all are sums.
    if (call.reduction == Reduction::unknown) call.reduction = Reduction::sum;
    try {
      for (const Walker* walker : group)
        expected.push_back(
            trace::collective_result(call, given, static_cast<std::size_t>(place(made, walker->rank()))));
    } catch (const std::exception& e) {
      made.why_not = e.what();
      expected.clear();
    }
    return expected;
  }

  void perform(const Group& group) {
    CollectiveRun made = begin(*group.front());
    const std::vector<Expected> expected = results(group, made);
    const bool guessed = made.call->reduction == Reduction::unknown;
    std::string why_not;
    for (std::size_t i = 0; i < group.size(); ++i) {
      const std::int32_t rank = group[i]->rank();
      made.parts[rank] = group[i]->pass(expected.empty() ? nullptr : &expected[i], why_not);
    }
    if (!why_not.empty()) made.why_not = why_not;
    const bool differs = std::any_of(made.parts.begin(), made.parts.end(), [](const auto& part) {
      return part.second.matched && part.second.matched->match == trace::Match::differs;
    });
    if (guessed && differs) {
      made.why_not = "the file does not say how it reduces, and the sum it is not";
      for (auto& [rank, part] : made.parts) part.matched.reset();
    }
    out_.collectives.push_back(std::move(made));
  }

  void pass_alone(Walker& walker, const std::string& why) {
    CollectiveRun made = begin(walker);
    made.why_not = made.call ? why : "collectives of this kind are not done here";
    if (!made.call) made.ranks = {walker.rank()};
    std::string ignored;
    const std::int32_t rank = walker.rank();
    made.parts[rank] = walker.pass(nullptr, ignored);
    out_.collectives.push_back(std::move(made));
  }

  static std::ptrdiff_t place(const CollectiveRun& made, std::int32_t rank) {
    return std::find(made.ranks.begin(), made.ranks.end(), rank) - made.ranks.begin();
  }

  static std::string numbers(const std::vector<std::int32_t>& ranks) {
    std::string text;
    for (const std::int32_t rank : ranks) text += (text.empty() ? "" : ", ") + std::to_string(rank);
    return text;
  }

  std::vector<std::unique_ptr<Walker>> walkers_;
  TogetherRun out_;
};

}  // namespace

TogetherRun run_together(const std::vector<Lane>& lanes, GoOn go_on) try {
  return Together(lanes, go_on).run();
} catch (const std::exception& e) {
  TogetherRun failed;
  CollectiveRun none;
  none.why_not = std::string("the ranks can't be run together: ") + e.what();
  failed.collectives.push_back(std::move(none));
  return failed;
}

}  // namespace nanquest
