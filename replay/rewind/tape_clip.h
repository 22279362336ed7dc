/// tape_clip: clips gradients of a tape's updates to a norm, and keeps a program's own clip correct.
#pragma once

#include <cstdint>
#include <string>

#include "probe/base/result.h"
#include "probe/trace/graph.h"
#include "replay/rewind/once_more.h"
#include "replay/rewind/tape_hooks.h"

namespace nanquest {

/// Before an update its gradients get a norm of at most `limit` together, by the formula of
/// torch.nn.utils.clip_grad_norm_ (0: any). If the program itself clipped and read the norm on the host, so
/// that its record holds a number, the factor becomes that of the present norm, if `otherwise` says that the
/// gradients may differ. For one run, which it must outlive.
class TapeClip {
 public:
  TapeClip(const TraceGraph& graph, double limit, bool otherwise)
      : graph_(graph), limit_(limit), otherwise_(otherwise) {}

  /// The update of `step`, whose ops are `span`. On error: the reason why its gradients are unknown.
  Status watch(const StepSpan& span, const TapeStep& step, TapeHooks& hooks);

  /// After the run: why the limit changed nothing; "" if it did, or there was none.
  std::string nothing_to_clip() const;

 private:
  const TraceGraph& graph_;
  double limit_ = 0, longest_ = 0;  // norms of an update's gradients
  bool otherwise_ = false;
  std::int64_t clipped_ = 0;
};

}  // namespace nanquest
