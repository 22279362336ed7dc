/// arguments: from an op's flat token list to the arguments of its operator's schema.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <string>
#include <vector>

#include "probe/trace/ids.h"

namespace nanquest::trace {

/// One schema argument, ready to be turned into an IValue in any precision.
struct ArgPlan {
  enum class Kind : std::uint8_t {
    constant,          ///< `constant` as it is
    tensor,            ///< rows[0] (none: undefined)
    tensors,           ///< Tensor[]
    optional_tensors,  ///< Tensor?[]; none is None
    scalar_type,       ///< `constant` is the recorded dtype; follows the precision
    missing_dtype,     ///< an optional dtype that was not set
    half_to_float,  ///< softmax's flag "half in, float out": as recorded only; meaningless once the input is
                    ///< wider
  };
  Kind kind = Kind::constant;
  c10::IValue constant;
  std::vector<TensorId> rows;
  bool on_device = false;  ///< `constant` is a device other than the CPU
  bool written = false;    ///< the schema says that the op writes it
  bool read = true;        ///< the result depends on its values (op_facts.h)
  bool pinned = false;     ///< its kernel accepts the recorded dtype only (found_inf, inv_scale, …)
};

/// Plans of all arguments of `op`. Throws std::runtime_error naming the argument that can't be rebuilt. Every
/// row index in the result is in range.
std::vector<ArgPlan> plan_arguments(const SnapshotDoc& doc, const OpRow& op,
                                    const c10::FunctionSchema& schema);

}  // namespace nanquest::trace
