/// Shared by tests of the recorder: one step both watched and not, its tables, and comparison of tables.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "probe/record/recorder.h"
#include "probe/record/tables.h"
#include "tests/record/programs.h"

namespace nanquest::testing {

/// Passes every op to a recorder that watches and to one that does not.
class Both : public OpSink {
 public:
  Both() {
    watching.begin_step(0, /*watch=*/true);
    blind.begin_step(0);
  }
  std::unique_ptr<OpFrame> on_start(const OpTraits& op, c10::ArrayRef<const c10::IValue> inputs) override {
    auto frame = std::make_unique<Frame>();
    frame->blind = blind.on_start(op, inputs);
    frame->watching = watching.on_start(op, inputs);
    return frame;
  }
  void on_end(const OpTraits& op, OpFrame& base, c10::ArrayRef<const c10::IValue> outputs) override {
    auto& frame = static_cast<Frame&>(base);
    blind.on_end(op, *frame.blind, outputs);
    watching.on_end(op, *frame.watching, outputs);
  }
  std::unique_ptr<OpFrame> on_saved_copy(const OpTraits& copy, OpFrame& outer,
                                         c10::ArrayRef<const c10::IValue> inputs) override {
    auto frame = std::make_unique<Frame>();
    frame->blind = blind.on_saved_copy(copy, *static_cast<Frame&>(outer).blind, inputs);
    frame->watching = watching.on_saved_copy(copy, *static_cast<Frame&>(outer).watching, inputs);
    return frame->blind && frame->watching ? std::move(frame) : nullptr;
  }
  void on_error(const char* what) override { ADD_FAILURE() << what; }

  Recorder watching{{.stacks = false}}, blind{{.stacks = false}};

 private:
  struct Frame : OpFrame {
    std::unique_ptr<OpFrame> watching, blind;
  };
};

StepNames names_of(const StepState& state);

/// The step with this number with the rows of loss and gradients, as a snapshot would hold it.
StepTables tables_of(Recorder& recorder, std::int64_t number, const StepState& state, const at::Tensor& loss);

/// Equal except for what needs values (statistics, births).
void expect_same_tables(const SnapshotDoc& a, const SnapshotDoc& b);
/// Equal bytes at equal paths.
void expect_same_data(const Recording& a, const Recording& b);

}  // namespace nanquest::testing
