/// graph: who wrote which slot, and what: the trace in the order of execution.
#pragma once

#include <cstdint>
#include <vector>

#include "probe/snapshot/model.h"

namespace nanquest {

/// The tables of a doc as a graph. The doc outlives it.
class TraceGraph {
 public:
  explicit TraceGraph(const SnapshotDoc& doc) : doc_(doc), writers_(doc.slots.size()) {
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(doc.ops.size()); ++i)
      each_written(i, [&](std::int32_t row) {
        const std::int32_t slot = tensor(row).slot;
        if (slot != kNone) writers_[static_cast<std::size_t>(slot)].push_back({i, bad(row)});
      });
  }

  const OpRow& op(std::int32_t i) const { return doc_.ops[static_cast<std::size_t>(i)]; }
  const TensorRow& tensor(std::int32_t row) const { return doc_.tensors[static_cast<std::size_t>(row)]; }
  const Slot& slot(std::int32_t s) const { return doc_.slots[static_cast<std::size_t>(s)]; }

  const StatsRow* stats(std::int32_t row) const {
    if (row == kNone) return nullptr;
    const std::int32_t s = tensor(row).stats;
    return s == kNone ? nullptr : &doc_.stats[static_cast<std::size_t>(s)];
  }
  bool bad(std::int32_t row) const {
    const StatsRow* s = stats(row);
    return s && s->non_finite() > 0;
  }

  template <class F>
  void each_argument(std::int32_t index, F&& f) const {
    const OpRow& o = op(index);
    for (std::int32_t i = 0; i < o.arg_count; ++i) {
      const ArgRow& a = doc_.args[static_cast<std::size_t>(o.first_arg + i)];
      if (a.kind == ArgKind::tensor && a.tensor != kNone) f(a.tensor);
    }
  }
  template <class F>
  void each_written(std::int32_t index, F&& f) const {
    const OpRow& o = op(index);
    for (std::int32_t i = 0; i < o.written_count; ++i)
      f(doc_.written[static_cast<std::size_t>(o.first_written + i)]);
  }

  /// The op before `before` whose bad values `slot` holds; kNone if they were there from the start.
  std::int32_t bad_writer(std::int32_t slot, std::int32_t before) const {
    const auto& list = writers_[static_cast<std::size_t>(slot)];
    for (auto it = list.rbegin(); it != list.rend(); ++it)
      if (it->op < before && it->bad) return it->op;
    return kNone;
  }

  bool writes_bad(std::int32_t index) const {
    bool any = false;
    each_written(index, [&](std::int32_t row) { any = any || bad(row); });
    return any;
  }

  struct Counts {
    std::uint64_t nan = 0, pos_inf = 0, neg_inf = 0;
  };
  Counts written_counts(std::int32_t index) const {
    Counts c;
    each_written(index, [&](std::int32_t row) { add(c, row); });
    return c;
  }
  Counts read_counts(std::int32_t index) const {
    Counts c;
    each_argument(index, [&](std::int32_t row) { add(c, row); });
    return c;
  }

 private:
  struct Writer {
    std::int32_t op;
    bool bad;
  };
  void add(Counts& c, std::int32_t row) const {
    if (const StatsRow* s = stats(row)) {
      c.nan += s->nan;
      c.pos_inf += s->pos_inf;
      c.neg_inf += s->neg_inf;
    }
  }
  const SnapshotDoc& doc_;
  std::vector<std::vector<Writer>> writers_;
};

}  // namespace nanquest
