/// culprit: who did the harm in a recorded step.
///
///     if (find_culprit(doc)) say(describe_culprit(doc));
///
/// Needs the tables alone (statistics included), so recorder and replay ask the same question. Never throws
/// but for lack of memory.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "probe/trace/origins.h"
#include "probe/trace/walk.h"

namespace nanquest {

/// Something whose bad values did harm.
struct Candidate {
  /// Blame order of design §5. `filled`: numbers that the host put into new memory while the step ran; they
  /// may have come out of the step itself (a result read and handed back), so they stand in line with the
  /// ops.
  enum class Kind : std::uint8_t { state, input, filled, op };
  Kind kind = Kind::op;
  OpId op;       ///< the birth, the op that turned an intended infinity into harm, or the first to read `row`
  TensorId row;  ///< the bad outside value, none for what ops made
  friend bool operator==(const Candidate&, const Candidate&) = default;
  friend auto operator<=>(const Candidate& a, const Candidate& b) { return a.place() <=> b.place(); }

 private:
  std::tuple<Kind, OpId, TensorId, Kind> place() const {
    return {kind == Kind::filled ? Kind::op : kind, op, row, kind};
  }
};

/// All of them, the first to be blamed first; empty if nothing did harm.
std::vector<Candidate> candidates_for_blame(const TraceGraph& graph, const Walk& walk);

/// Finds the culprit by the blame order of design §5 and fills `doc.culprit`. False when the step
/// holds nothing harmful (then `doc.culprit.op` is kNone and `value` is empty). Harm is a non-finite loss,
/// gradient of a named parameter, update of a parameter or state, or what is left in a buffer (Walk). What
/// the step did not compute is its input, or the state that it belongs to; without a name it gets one by its
/// first reader, whose argument `argument_name` may know.
bool find_culprit(SnapshotDoc& doc, const ArgumentName& argument_name = {});

/// Fills `doc.culprit` for somebody who knows better whom to blame: `op` made the bad values, or was the
/// first to read them in `row`.
void name_culprit(SnapshotDoc& doc, OpId op, TensorId row, const ArgumentName& argument_name = {});

/// Several named tensors of one kind may lie in the memory that the culprit was first read from, as weights
/// do that are parts of a flat one: names the first of them that `holds_bad`, the culprit and that memory
/// alike.
void settle_name(SnapshotDoc& doc, const std::function<bool(const NamedTensor&)>& holds_bad);

/// The collective by which the culprit's values came from another process, "c10d::allreduce_ in
/// blocks.1.mlp"; "" if they did not.
std::string arrived_by(const SnapshotDoc& doc);

/// One or two sentences: "aten::mm in blocks.1.mlp (forward) made 17 +Inf out of finite inputs".
std::string describe_culprit(const SnapshotDoc& doc);

}  // namespace nanquest
