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
  c10::Storage last_scalar;       ///< of the last differentiable number of the forward pass: its loss, most likely
  at::ScalarType last_scalar_type = at::kFloat;
  std::size_t update_begins = 0;  ///< first op of the optimizer
  Gate gate = Gate::ok;
  std::size_t update_ends = 0;    ///< first op after it
  int forwards = 0;               ///< forward passes since the last backward
};

}  // namespace nanquest::attach
