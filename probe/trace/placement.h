/// placement: the place of something in a run of several processes: which part of a weight this process
/// holds, and to which pass of a pipeline an op belongs.
///
/// The recorder notes it in SnapshotDoc::environment; most programs, and older files, have no such notes.
#pragma once

#include <string>
#include <string_view>

#include "probe/trace/ids.h"

namespace nanquest {

/// Keys of SnapshotDoc::environment. Followed by the name of a weight; the value is text, "rows 16 to 31 of
/// 32, part 2 of 2 over mesh dimension shard".
inline constexpr std::string_view kPartKey = "part_of.";
/// The value, "4 6 1 3", has the number of micro-batches and stages of a pipeline, and the stages, from 0,
/// that this process runs. OpRow::micro_batch then counts the micro-batches of the first of them, then those
/// of the next.
inline constexpr std::string_view kPipelineKey = "pipeline";

/// Whether an entry of the environment describes ranks (these keys or those of collectives.h): two ranks, or
/// a recording and its replay, may differ in it although they computed the same.
bool tells_of_ranks(std::string_view key);

/// The part of a weight, or of the optimizer's state for it, that this process holds, as text; "" if it holds
/// all, or if there is no note.
std::string part_of(const SnapshotDoc& doc, const std::string& name);

/// "micro-batch 3 of 4, stage 2 of 2" of a pipeline, counted from 1: the pass in which `op` ran. For a
/// collective, which belongs to none, that of the first op of the culprit's lineage that has one. Without the
/// micro-batch if the culprit is the program's state, which all of them read. "" without a pipeline.
std::string pass_of(const SnapshotDoc& doc, OpId op);

}  // namespace nanquest
