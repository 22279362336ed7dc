/// One step of an attached program while it is being recorded.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <optional>

#include "probe/attach/session.h"
#include "probe/capture/recorder.h"

namespace nanquest::attach {

struct AttachSession::Trace {
  explicit Trace(bool watch)
      : recorder(recording, {.scan = watch, .hash = watch, .stacks = true, .lazy = true}), watched(watch) {}
  Recording recording;
  TraceRecorder recorder;
  bool watched;
  at::Tensor loss;                ///< what backward was started from
  std::size_t update_begins = 0;  ///< first op of the optimizer
  Gate gate = Gate::ok;
  int forwards = 0;  ///< forward passes since the last backward
  std::optional<PhaseScope> updating;
};

}  // namespace nanquest::attach
