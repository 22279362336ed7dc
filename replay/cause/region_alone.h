/// region_alone: the operators of a compiled region as a step of their own.
#pragma once

#include <optional>

#include "replay/trace/replayer.h"

namespace nanquest {

/// Runs the graph of the region at op `region` operator by operator on what the region was given, and records
/// that; modules are the program's. Nothing if the file does not hold the graph, or if its kernels drew
/// random numbers. Throws what the operators throw.
std::optional<Replayer> region_alone(const Replayer& replayer, OpId region);

}  // namespace nanquest
