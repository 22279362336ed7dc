#include "replay/trace/lockstep.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <tuple>
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

/// A run, how far it has to be for each row, and what it wrote ahead of the last run.
struct Ahead {
  explicit Ahead(const LockstepRun& what) : side(what) {}

  Side side;
  std::vector<std::int32_t> needed;
  std::map<std::int32_t, std::size_t> row_of;
  std::map<std::size_t, std::vector<at::Tensor>> kept;
};

}  // namespace

std::vector<std::pair<RunResult, std::vector<at::Tensor>>> march(const std::vector<LockstepRun>& runs,
                                                                 const std::vector<std::vector<OpId>>& rows,
                                                                 const CompareOps& compare) {
  std::deque<Ahead> others;
  for (std::size_t k = 0; k < runs.size(); ++k) {
    load_outside(runs[k].replayer->impl());
    Ahead& run = others.emplace_back(runs[k]);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      run.needed.push_back(std::max(rows[i][k].row(), i ? run.needed[i - 1] : kNone));
      run.row_of.emplace(rows[i][k].row(), i);
    }
  }
  Ahead& last = others.back();
  for (std::size_t i = 0; i < rows.size();) {
    std::size_t end = rows.size();
    for (std::size_t k = 0; k + 1 < others.size(); ++k) {
      Ahead& run = others[k];
      std::uint64_t bytes = 0;
      const auto keep = [&](OpId op, const std::vector<at::Tensor>& written) {
        const auto found = run.row_of.find(op.row());
        if (found == run.row_of.end()) return;
        auto& kept = run.kept[found->second];
        for (const at::Tensor& t : written) kept.push_back(t.defined() ? t.detach().clone() : t);
        bytes += bytes_of(kept);
      };
      const trace::RunScope scope(run.side.doc());
      std::size_t reached = i;
      for (; reached < end && (reached == i || bytes < kBytesAhead); ++reached)
        run.side.run_to(run.needed[reached], keep);
      end = reached;  // the next runs need to go no farther
    }
    const trace::RunScope scope(last.side.doc());
    for (; i < end; ++i)
      last.side.run_to(rows[i].back().row(), [&](OpId op, const std::vector<at::Tensor>& written) {
        if (op != rows[i].back()) return;
        std::vector<std::vector<at::Tensor>> all;
        for (std::size_t k = 0; k + 1 < others.size(); ++k) all.push_back(std::move(others[k].kept[i]));
        all.push_back(written);
        compare(i, all);
        for (std::size_t k = 0; k + 1 < others.size(); ++k) others[k].kept.erase(i);
      });
  }
  std::vector<std::pair<RunResult, std::vector<at::Tensor>>> results;
  results.reserve(others.size());
  for (Ahead& run : others) results.push_back(run.side.finish());
  return results;
}

LockstepResult lockstep(const LockstepRun& a, const LockstepRun& b, std::vector<OpPair> pairs,
                        const ComparePair& compare) {
  std::sort(pairs.begin(), pairs.end(), [](const OpPair& l, const OpPair& r) { return l.b < r.b; });
  std::vector<std::vector<OpId>> rows;
  rows.reserve(pairs.size());
  for (const OpPair& pair : pairs) rows.push_back({pair.a, pair.b});
  auto results = march({a, b}, rows, [&](std::size_t row, const std::vector<std::vector<at::Tensor>>& all) {
    compare(pairs[row], all[0], all[1]);
  });
  LockstepResult result;
  std::tie(result.a, result.wanted_a) = std::move(results[0]);
  std::tie(result.b, result.wanted_b) = std::move(results[1]);
  return result;
}

}  // namespace nanquest
