/// TraceView: the recorded ops of a step for display: ranges, formats, which op made what, the path to the
/// loss.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "probe/trace/graph.h"

namespace nanquest::viewer {

/// What is known of the values that an op read or wrote; added up over its tensors.
struct ValueRange {
  bool known = false;  ///< false: nothing was scanned
  std::uint64_t count = 0, nan = 0, pos_inf = 0, neg_inf = 0;
  bool has_amax = false;  ///< floats are among them; whole numbers have no range that they could leave
  double amax = 0;        ///< largest finite |x| of the floats
  double headroom = 0;    ///< bits left in the tightest format among the float tensors; +Inf if all zero
  bool has_headroom = false;
  std::uint64_t non_finite() const { return nan + pos_inf + neg_inf; }
  /// Nothing finite is among them, so there is no largest value.
  bool none_finite() const { return known && count > 0 && non_finite() >= count; }
};

/// The largest finite |x|; "none finite" if there is none, "-" if nothing was scanned, if there are no
/// floats, or if there are only zeros beside values that are not finite.
std::string amax_text(const ValueRange& range);

/// For values without a number of bits: "none finite", "zeros", or "finite ones zero" beside others that are
/// not finite.
const char* room_words(const ValueRange& range);

/// One line of the trace panel.
struct TraceLine {
  std::string name, module, node, read_formats, write_format, write_shape;
  Phase phase = Phase::forward;
  ValueRange read, written;
};

/// Why an op is marked.
enum class OpMark : std::uint8_t { none, culprit, lineage, birth, suppressed, carries };

class TraceView {
 public:
  TraceView() = default;
  /// Keeps a pointer to `doc`, which must outlive this object at the same address. One pass over the ops.
  explicit TraceView(const SnapshotDoc& doc);

  std::size_t size() const { return doc_ == nullptr ? 0 : doc_->ops.size(); }
  IdRange<OpRow> ops() const { return IdRange<OpRow>(OpId{0}, OpId{size()}); }
  TraceLine line(OpId op) const;
  /// Path of the module that `op` ran in; "" is the root.
  std::string module(OpId op) const { return std::string(graph_->module_of(op)); }
  OpMark mark(OpId op) const { return marks_[op]; }
  /// What was found in all that `op` wrote; nothing if nothing was scanned.
  BadCounts made(OpId op) const { return graph_->written_counts(op); }
  /// Ops that wrote what `op` reads, in order of its arguments, each once; of memory written in many pieces
  /// the last few writers.
  const std::vector<OpId>& producers(OpId op) const { return producers_[op]; }
  /// Ops that read what `op` wrote, before it was overwritten.
  const std::vector<OpId>& consumers(OpId op) const { return consumers_[op]; }
  /// The producer to go to: the one on the lineage, otherwise a non-finite one, otherwise the one of largest
  /// amax; none if there is none.
  OpId walk_back(OpId op) const;
  /// The consumer to go to: the one on the lineage, otherwise a non-finite one, otherwise the first; none if
  /// there is none.
  OpId walk_forward(OpId op) const;
  /// Ops from `op` on, each reading a result of the one before, on the shortest path to the op that makes the
  /// loss; if the loss does not depend on `op`, to one that makes a gradient, before it is clipped or
  /// unscaled. Empty if neither is reached.
  struct Path {
    bool to_loss = false;
    std::vector<OpId> ops;
  };
  Path path_from(OpId op) const;
  /// Ops with every word of `words` somewhere in name, module, node, phase or formats (case ignored). All if
  /// empty.
  std::vector<OpId> filter(const std::string& words) const;
  /// Stored tensor (path) that `op` reads, also through copies and casts, or, for a host write, wrote: the
  /// largest, numbers before indices; "" if all its inputs were produced in the step.
  std::string stored_data(OpId op) const;
  /// The program's own line that `op` comes from; for a backward op that of the op it differentiates. "" if
  /// no stack was recorded.
  std::string source(OpId op) const;
  /// First op whose written values left less than one bit of headroom: where it began to go wrong; none if
  /// none did.
  OpId first_tight() const { return first_tight_; }

 private:
  Path shortest(OpId from, const PerRow<OpRow, char>& ends) const;
  /// What `row` copies, as it is before `before`; itself if it is no copy.
  TensorId copied(TensorId row, OpId before) const;
  std::vector<TensorId> shown_writes(OpId op) const;
  std::string searched(OpId op) const;
  void note_searched();
  ValueRange range(std::span<const TensorId> rows) const;

  const SnapshotDoc* doc_ = nullptr;
  std::optional<TraceGraph> graph_;
  PerRow<OpRow, OpMark> marks_;
  PerRow<OpRow, std::vector<OpId>> producers_, consumers_;
  OpId first_tight_;
  /// The text that a filter searches, in lower case: of a million ops most share theirs.
  std::vector<std::string> texts_;
  PerRow<OpRow, std::uint32_t> text_of_;
};

/// Frames from which `op` was called, innermost first: those of its forward op (the engine calls a backward
/// op), then its own.
std::vector<std::string> program_stack(const SnapshotDoc& doc, OpId op);

/// "culprit", "on the path", "first non-finite", "intended", "carries", "".
const char* mark_words(OpMark mark);

}  // namespace nanquest::viewer
