/// One step of an attached program while it is being recorded.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <memory>

#include "probe/attach/session.h"
#include "probe/capture/recorder.h"

namespace nanquest::attach {

struct AttachSession::Trace {
  /// By TraceRecorder: values are looked at when they are written (`watch`), or at least kept of what can't
  /// be run again.
  struct Recorded {
    explicit Recorded(bool watch)
        : recorder(recording, {.scan = watch, .hash = watch, .stacks = true, .lazy = true}) {}
    Recording recording;
    TraceRecorder recorder;
  };

  explicit Trace(std::int64_t number) : round(number) {}
  bool stands() const { return !recorded; }
  TraceRecorder* recorder() { return recorded ? &recorded->recorder : nullptr; }

  std::int64_t round;                  ///< see StandingSteps
  std::unique_ptr<Recorded> recorded;  ///< null: the standing trace records
  bool watched = false;
  bool keeps = false;        ///< standing: the update is recorded with what it overwrites
  bool odd = false;          ///< an op came by that can't be run again
  c10::Storage last_scalar;  ///< of the last differentiable number of the forward pass: its loss, most likely
  at::ScalarType last_scalar_type = at::kFloat;
  std::size_t update_begins = 0;  ///< first op of the optimizer
  Gate gate = Gate::ok;
  std::size_t update_ends = 0;  ///< first op after it
  int forwards = 0;             ///< forward passes since the last backward
};

}  // namespace nanquest::attach
