/// Where the numbers of an operator's result come from, if it computes none: one list for recorder and
/// replay.
///
/// Operators are named without overload ("aten::fill_"). Pure functions.
#pragma once

#include <string_view>

namespace nanquest {

/// The operator's name as causes and facts know it: without "aten::", a leading "_foreach_" and a trailing
/// "_" (in place): "aten::_foreach_copy_" is "copy". Other libraries' names stay.
std::string_view plain_name(std::string_view op);

/// True if every number of the result of `op` is one of its inputs' numbers, unchanged or cast: views,
/// copies, selections, orders. It computes nothing.
bool moves_elements(std::string_view op);

/// True if the numbers of the result of `op` are constants, drawn, or what lay in new memory: it computes
/// nothing.
bool makes_numbers(std::string_view op);

}  // namespace nanquest
