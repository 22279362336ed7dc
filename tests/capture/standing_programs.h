/// What the tests of the standing trace share: both recorders at once, and their tables side by side.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "probe/capture/recorder.h"
#include "probe/capture/standing/standing.h"
#include "probe/capture/standing/tables.h"
#include "tests/capture/programs.h"

namespace nanquest::testing {

/// Shows every op to a TraceRecorder and to a StandingTrace.
class Both : public OpSink {
 public:
  explicit Both(StandingTrace& trace)
      : recorder(recording, {.scan = false, .hash = false, .lazy = true}), trace_(trace) {}

  std::unique_ptr<OpFrame> on_start(const OpTraits& op, c10::ArrayRef<const c10::IValue> inputs) override {
    auto frame = std::make_unique<Frame>();
    frame->standing = trace_.on_start(op, inputs);
    frame->recorded = recorder.on_start(op, inputs);
    return frame;
  }
  void on_end(const OpTraits& op, OpFrame& base, c10::ArrayRef<const c10::IValue> outputs) override {
    auto& frame = static_cast<Frame&>(base);
    trace_.on_end(op, *frame.standing, outputs);
    recorder.on_end(op, *frame.recorded, outputs);
  }
  void on_error(const char* what) override { ADD_FAILURE() << what; }

  Recording recording;
  TraceRecorder recorder;

 private:
  struct Frame : OpFrame {
    std::unique_ptr<OpFrame> standing, recorded;
  };
  StandingTrace& trace_;
};

void expect_same_tables(const SnapshotDoc& a, const SnapshotDoc& b);
/// Equal bytes under equal paths.
void expect_same_data(const Recording& a, const Recording& b);

}  // namespace nanquest::testing
