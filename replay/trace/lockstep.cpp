#include "replay/trace/lockstep.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "replay/trace/environment.h"
#include "replay/trace/replayer_state.h"

namespace nanquest {
namespace {

constexpr std::uint64_t kBytesAhead = std::uint64_t{64} << 20;

std::uint64_t bytes_of(const std::vector<at::Tensor>& tensors) {
  std::uint64_t bytes = 0;
  for (const at::Tensor& t : tensors)
    if (t.defined()) bytes += static_cast<std::uint64_t>(t.numel()) * t.element_size();
  return bytes;
}

/// One side: its run, as far as it has come.
class Side {
 public:
  explicit Side(const LockstepRun& what)
      : what_(what), impl_(what.replayer->impl()), run_(impl_, *what.options), values_(what.wanted.size()) {
    for (std::size_t i = 0; i < what.wanted.size(); ++i) wanted_.emplace(what.wanted[i].op.row(), i);
    end_ = trace::ops_to_run(impl_.doc(), *what.options).size();
  }

  const SnapshotDoc& doc() const { return impl_.doc(); }
  /// Runs the ops up to and including `last`, and calls `seen` with what each wrote.
  template <class Seen>
  void run_to(std::int32_t last, const Seen& seen) {
    for (; next_ <= last && next_ < static_cast<std::int32_t>(end_); ++next_) {
      const OpId op{next_};
      std::vector<at::Tensor> written;
      run_.step(op, &written);
      seen(op, written);
      for (auto [at, end] = wanted_.equal_range(next_); at != end; ++at)
        if (const at::Tensor value = run_.value(what_.wanted[at->second].row); value.defined())
          values_[at->second] = value.detach().clone();
      run_.finish_op(op);
    }
  }
  std::pair<RunResult, std::vector<at::Tensor>> finish() {
    const trace::RunScope scope(doc());
    run_to(std::numeric_limits<std::int32_t>::max(), [](OpId, const std::vector<at::Tensor>&) {});
    return {run_.finish(), std::move(values_)};
  }

 private:
  const LockstepRun& what_;
  const Replayer::Impl& impl_;
  trace::Run run_;
  std::multimap<std::int32_t, std::size_t> wanted_;
  std::vector<at::Tensor> values_;
  std::int32_t next_ = 0;
  std::size_t end_ = 0;
};

void load_outside(const Replayer::Impl& impl) {
  for (const Slot& slot : impl.doc().slots)
    if (!slot.data.empty()) (void)impl.load(slot.data);
}

}  // namespace

LockstepResult lockstep(const LockstepRun& a, const LockstepRun& b, std::vector<OpPair> pairs,
                        const ComparePair& compare) {
  load_outside(a.replayer->impl());
  load_outside(b.replayer->impl());
  std::sort(pairs.begin(), pairs.end(), [](const OpPair& l, const OpPair& r) { return l.b < r.b; });
  // How far A has to be for the pairs up to this one.
  std::vector<std::int32_t> needed(pairs.size());
  std::map<std::int32_t, std::size_t> partner;  // op of A -> pair
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    needed[i] = std::max(pairs[i].a.row(), i ? needed[i - 1] : kNone);
    partner.emplace(pairs[i].a.row(), i);
  }
  Side left(a), right(b);
  std::map<std::size_t, std::vector<at::Tensor>> ahead;  // pair -> what A wrote
  std::uint64_t bytes = 0;
  const auto keep = [&](OpId op, const std::vector<at::Tensor>& written) {
    const auto found = partner.find(op.row());
    if (found == partner.end()) return;
    auto& kept = ahead[found->second];
    for (const at::Tensor& t : written) kept.push_back(t.defined() ? t.detach().clone() : t);
    bytes += bytes_of(kept);
  };
  for (std::size_t i = 0; i < pairs.size();) {
    std::size_t end = i;
    {
      const trace::RunScope scope(left.doc());
      for (bytes = 0; end < pairs.size() && (end == i || bytes < kBytesAhead); ++end)
        left.run_to(needed[end], keep);
    }
    const trace::RunScope scope(right.doc());
    for (; i < end; ++i)
      right.run_to(pairs[i].b.row(), [&](OpId op, const std::vector<at::Tensor>& written) {
        if (op != pairs[i].b) return;
        compare(pairs[i], ahead[i], written);
        ahead.erase(i);
      });
  }
  LockstepResult result;
  std::tie(result.a, result.wanted_a) = left.finish();
  std::tie(result.b, result.wanted_b) = right.finish();
  return result;
}

}  // namespace nanquest
