/// constants: the numbers and settings that a program passed to an op, beside its tensors.
#pragma once

#include <ATen/core/ivalue.h>

#include <string>
#include <vector>

#include "replay/trace/replayer.h"

namespace nanquest::diff {

struct Constant {
  int position = 0;   ///< in the operator's schema
  std::string name;   ///< as there
  std::string text;   ///< for people, and for comparison
  c10::IValue value;  ///< as the op takes it
};

/// The constants of an op whose value can change its result: not devices, layouts, generators. Numbers that
/// are wrapped into tensors (x * 0.5) are constants. Empty for ops that can't be run, and for views.
std::vector<Constant> constants_of(const Replayer& replayer, OpId op);

}  // namespace nanquest::diff
