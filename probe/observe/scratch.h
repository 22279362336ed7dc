/// Which results of operators are working memory.
#pragma once

#include <cstddef>
#include <string_view>

namespace nanquest {

/// True if the kernels of `op` needn't write all of what they return as number `output`: working memory that
/// only their backward operators know how to read. Its values mean nothing, and differ from run to run.
bool is_scratch(std::string_view op, std::size_t output);

/// True if `op` is such a backward operator and `argument` (its name in the schema) that memory.
bool reads_scratch(std::string_view op, std::string_view argument);

}  // namespace nanquest
