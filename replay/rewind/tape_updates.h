/// tape_updates: what updates of a tape write into weights, looked at and made smaller.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "probe/base/result.h"
#include "probe/trace/graph.h"
#include "replay/rewind/outside_writes.h"
#include "replay/rewind/tape_hooks.h"
#include "replay/trace/replayer.h"

namespace nanquest {

/// weight = before + share · (after − before), in fp32 at least, of each update that `watch` is told of. Of
/// one run; must outlive it.
class TapeUpdates {
 public:
  /// What is to be done where an update makes a weight non-finite: the step, and what happened. May throw.
  using Bad = std::function<void(std::int64_t step, std::string what)>;

  /// `shortens`: some share is not 1, so what the weights were before has to be kept. `all`: every update has
  /// to take its share; else those that can't be made smaller stay as they are.
  TapeUpdates(const Replayer& replayer, const TraceGraph& graph, bool shortens, bool all, Bad bad);

  /// The update of `step`, which was made. An error, with the reason: it can't be made smaller, and has to.
  Status watch(const TapeStep& step, double share, TapeHooks& hooks);
  /// What writes a weight between two updates is no update, and stays as it is.
  void keep(std::span<const OutsideWrite> others, TapeHooks& hooks);

  /// Updates so far that write a weight.
  std::int64_t count() const { return count_; }

 private:
  void shorten(std::int32_t slot, at::Tensor& weight, double share);

  const Replayer& replayer_;
  const TraceGraph& graph_;
  bool shortens_ = false, all_ = false;
  Bad bad_;
  std::vector<std::int32_t> weights_;  // slots
  std::map<std::int32_t, at::Tensor> before_;
  std::int64_t count_ = 0;
};

}  // namespace nanquest
