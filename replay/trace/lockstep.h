/// lockstep: runs side by side, of one file or of several, with what all wrote in hand at chosen ops.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "replay/trace/replayer.h"

namespace nanquest {

/// One op of each run.
struct OpPair {
  OpId a, b;
};

/// A row of a run's doc, just after an op.
struct Place {
  OpId op;
  TensorId row;
};

/// One of the runs. Both pointers must outlive the call; `wanted`: values to be copied.
struct LockstepRun {
  const Replayer* replayer = nullptr;
  const RunOptions* options = nullptr;
  std::vector<Place> wanted = {};
};

/// What both ops of a pair wrote: one tensor per entry of the `written` range, undefined where there is none.
using ComparePair = std::function<void(const OpPair& pair, const std::vector<at::Tensor>& a,
                                       const std::vector<at::Tensor>& b)>;

struct LockstepResult {
  RunResult a, b;
  std::vector<at::Tensor> wanted_a, wanted_b;  ///< copies, undefined where a value was not available
};

/// Runs both and calls `compare` for each pair, in the order of b. Each run has its own file's environment
/// (threads, deterministic algorithms). `pairs` may be in any order, each op in one pair at most. What A
/// wrote is kept until B has reached its partner: at most 64 MB of it if both run in the same order. Not for
/// options with `stop_when_harmed`. Failed ops are in the results. Throws what `compare` throws, and
/// std::runtime_error if outside values can't be read.
LockstepResult lockstep(const LockstepRun& a, const LockstepRun& b, std::vector<OpPair> pairs,
                        const ComparePair& compare);

/// What the ops of a row of `march` wrote, in the order of the runs.
using CompareOps = std::function<void(std::size_t row, const std::vector<std::vector<at::Tensor>>& written)>;

/// The same for any number of runs. `rows`: an op of each run, each op in one row at most, in the order of
/// the last run, in which `compare` is called. The results and the wanted values of each run.
std::vector<std::pair<RunResult, std::vector<at::Tensor>>> march(const std::vector<LockstepRun>& runs,
                                                                 const std::vector<std::vector<OpId>>& rows,
                                                                 const CompareOps& compare);

}  // namespace nanquest
