/// call_values: one execution of one op: what it is given, and what becomes of its results.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <string>
#include <vector>

#include "replay/trace/plan.h"
#include "replay/trace/slots.h"

namespace nanquest::trace {

/// The result of executing one op.
struct StepOutcome {
  bool ran = false, substituted = false, failed = false;
  /// It ran as recorded although another precision was asked for: it has no kernel there, or its memory is
  /// used as several dtypes.
  bool kept_format = false;
  std::string error, note;
  /// Isolated runs only (nothing was stored): what the op returned and wrote, by row of OpPlan::outputs /
  /// written.
  std::vector<at::Tensor> outputs, written;
};

/// Where isolated ops get their inputs, instead of the machine's own slots.
using InputSlots = SlotStore;

/// One execution: its arguments, and its results.
struct Call {
  InputSlots& inputs;
  bool isolated = false;
  std::vector<c10::IValue> stack = {};
  std::vector<at::Tensor> tensors = {};  ///< every tensor argument
  struct Mutable {
    TensorId row;
    at::Tensor tensor;
  };
  std::vector<Mutable> mutables = {};  ///< arguments that the op writes
  std::vector<at::Tensor> returned = {};
};

/// Between the slots of a run and its calls.
class CallValues {
 public:
  explicit CallValues(SlotStore& slots) : slots_(slots) {}

  /// The format in which the op reads the row in precision `p`.
  at::ScalarType wanted(const OpPlan& op, const ArgPlan& arg, TensorId row, Precision p) const;
  /// The argument as its schema wants it; its tensors are noted in `call`. Throws if a value is missing.
  c10::IValue argument(const OpPlan& op, const ArgPlan& arg, Precision p, Call& call);
  /// Stores what the op wrote and returned. Throws if it returned nothing where it had returned values.
  void keep(const OpPlan& op, Call& call);
  /// Gives it to `out` instead.
  void isolate(const OpPlan& op, const Call& call, StepOutcome& out) const;

 private:
  at::Tensor input(const OpPlan& op, const ArgPlan& arg, TensorId row, Precision p, Call& call);

  SlotStore& slots_;
};

}  // namespace nanquest::trace
