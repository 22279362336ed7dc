/// culprit: which op or value did the harm in a recorded step.
///
///     if (find_culprit(doc)) say(describe_culprit(doc));
///
/// Needs only the tables (statistics included), so recorder and replay use the same code. Throws only if
/// memory runs out.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "probe/trace/origins.h"
#include "probe/trace/walk.h"

namespace nanquest {

/// An op or value whose bad values did harm.
struct Candidate {
  /// In the order in which they are blamed. `filled`: numbers that the host wrote into new memory during the
  /// step. They may be results of the step itself (read and handed back), so they are ordered among the ops.
  enum class Kind : std::uint8_t { state, input, filled, op };
  Kind kind = Kind::op;
  OpId op;       ///< the birth, the op that turned an intended infinity into harm, or the first to read `row`
  TensorId row;  ///< the bad outside value, none for results of ops
  friend bool operator==(const Candidate&, const Candidate&) = default;
  friend auto operator<=>(const Candidate& a, const Candidate& b) { return a.place() <=> b.place(); }

 private:
  std::tuple<Kind, OpId, TensorId, Kind> place() const {
    return {kind == Kind::filled ? Kind::op : kind, op, row, kind};
  }
};

/// All candidates in the order of blame; empty if nothing did harm.
std::vector<Candidate> candidates_for_blame(const TraceGraph& graph, const Walk& walk);

/// Finds the culprit by the order of Candidate::Kind and fills `doc.culprit`. False if the step holds nothing
/// harmful (then `doc.culprit.op` is kNone and `value` is empty). Harm is a non-finite loss, gradient of a
/// named parameter, update of a parameter or state, or value left in a buffer (Walk). A value that the step
/// did not compute is its input, or the state to which it belongs; if it has no name, it is named by its
/// first reader, whose argument `argument_name` may know.
bool find_culprit(SnapshotDoc& doc, const ArgumentName& argument_name = {});

/// Fills `doc.culprit` for a caller that has found the culprit: `op` made the bad values, or was the first to
/// read them in `row`.
void name_culprit(SnapshotDoc& doc, OpId op, TensorId row, const ArgumentName& argument_name = {});

/// Several named tensors of one kind may be in the memory from which the culprit was first read (weights that
/// are parts of a flat one). Names the first of them that `holds_bad`, for both the culprit and that memory.
void settle_name(SnapshotDoc& doc, const std::function<bool(const NamedTensor&)>& holds_bad);

/// The collective by which the culprit's values arrived from another process, "c10d::allreduce_ in
/// blocks.1.mlp"; "" if they did not.
std::string arrived_by(const SnapshotDoc& doc);

/// One or two sentences: "aten::mm in blocks.1.mlp (forward) made 17 +Inf out of finite inputs".
std::string describe_culprit(const SnapshotDoc& doc);

}  // namespace nanquest
