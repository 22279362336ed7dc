/// failure: an exception that ends a run, in words.
#pragma once

#include <cstdint>
#include <exception>
#include <string>

#include "probe/base/result.h"

namespace nanquest::trainer {

/// The first line of what `e` says, without LibTorch's backtrace.
std::string first_line(const std::exception& e);

/// `internal`: that the run was ended by `e` in `step`; says how to need less memory if that ran out.
Error failure(const std::exception& e, std::int64_t step);

}  // namespace nanquest::trainer
