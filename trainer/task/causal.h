/// What every causal attention has in common, in the one place that says it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace nanquest::trainer {

/// bool [rows, columns], true where a query may not look: row i is the query of position `first` + i, column
/// j the key of position j.
at::Tensor future(std::int64_t rows, std::int64_t columns, std::int64_t first,
                  const at::TensorOptions& options);

/// What scores q·kᵀ of heads of that width are divided by: √width.
double score_divisor(std::int64_t head_width);

}  // namespace nanquest::trainer
