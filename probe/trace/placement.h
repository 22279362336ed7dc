/// placement: where something lies in a run of several processes: which part of a weight this process holds,
/// and which pass of a pipeline an op belongs to.
///
/// Who records notes it in SnapshotDoc::environment; most programs, and files of before, have no such notes.
#pragma once

#include <string>
#include <string_view>

#include "probe/trace/ids.h"

namespace nanquest {

/// Keys of SnapshotDoc::environment. Before the name of a weight; its value is in words, "rows 16 to 31 of
/// 32, part 2 of 2 over mesh dimension shard".
inline constexpr std::string_view kPartKey = "part_of.";
/// Its value, "4 6 1 3", says how many micro-batches and stages a pipeline has, and which stages, from 0,
/// this process runs. OpRow::micro_batch then counts the micro-batches of the first of them, then those of
/// the next.
inline constexpr std::string_view kPipelineKey = "pipeline";

/// Whether an entry of the environment is a note of who did what with whom, these or those of collectives.h:
/// two ranks, or a recording and its replay, may differ in it and have computed alike.
bool tells_of_ranks(std::string_view key);

/// The part of the whole that this process holds of a weight, or of what the optimizer keeps for it, in
/// words; "" where it is all of it, or nobody noted it.
std::string part_of(const SnapshotDoc& doc, const std::string& name);

/// "micro-batch 3 of 4, stage 2 of 2" of a pipeline, counted from 1: the pass in which `op` ran. Of a
/// collective, which belongs to none, that of the first op of the culprit's lineage that does. Without the
/// micro-batch where the culprit is the program's state, which all of them read. "" where there is no
/// pipeline.
std::string pass_of(const SnapshotDoc& doc, OpId op);

}  // namespace nanquest
