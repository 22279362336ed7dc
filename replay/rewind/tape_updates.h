/// tape_updates: what updates of a tape write into weights, checked and reduced.
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

/// weight = before + share · (after − before), in fp32 at least, for each update passed to `watch`. For one
/// run, which it must outlive.
class TapeUpdates {
 public:
  /// Called when an update makes a weight non-finite, with the step and what happened. May throw.
  using Bad = std::function<void(std::int64_t step, std::string what)>;

  /// `shortens`: some share is not 1, so the weights before the update have to be kept. `all`: every update
  /// must take its share; otherwise those that can't be reduced stay as they are.
  TapeUpdates(const Replayer& replayer, const TraceGraph& graph, bool shortens, bool all, Bad bad);

  /// The update of `step`, which was made. On error: the reason why it can't be reduced although it must be.
  Status watch(const TapeStep& step, double share, TapeHooks& hooks);
  /// A write to a weight between two updates is no update, and stays as it is.
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
