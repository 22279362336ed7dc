/// Whether two recorded ops were called from the same line, as far as that can be told cheaply.
#pragma once

#include <cstdint>

#include "probe/record/step.h"

namespace nanquest::record {

/// Op `op_a` of step `a` and op `op_b` of step `b`: the same operator in the same module, node, phase and
/// micro-batch, with the same arguments. Number arguments of an optimizer's ops may differ; ops of different
/// indices may use other memory.
bool same_call(const Step& a, std::uint32_t op_a, const Step& b, std::uint32_t op_b);

}  // namespace nanquest::record
