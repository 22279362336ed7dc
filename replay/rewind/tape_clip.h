/// tape_clip: gradients of a tape's updates clipped to a norm, and a program's own clip kept true.
#pragma once

#include <cstdint>
#include <string>

#include "probe/base/result.h"
#include "probe/trace/graph.h"
#include "replay/rewind/once_more.h"
#include "replay/rewind/tape_hooks.h"

namespace nanquest {

/// Before an update its gradients get a norm of at most `limit` together, by the formula of
/// torch.nn.utils.clip_grad_norm_ (0: any); and the factor by which the program itself clipped, where it read
/// their norm on the host so that its record is a number, becomes that of the norm they have now, if
/// `otherwise` says that they may be others. Of one run; must outlive it.
class TapeClip {
 public:
  TapeClip(const TraceGraph& graph, double limit, bool otherwise)
      : graph_(graph), limit_(limit), otherwise_(otherwise) {}

  /// The update of `step`, whose ops are `span`. An error, with the reason: its gradients are not known.
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
