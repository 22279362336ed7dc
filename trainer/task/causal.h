/// Shared by all causal attention.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace nanquest::trainer {

/// bool [rows, columns], true where a query may not look: row i is the query of position `first` + i, column
/// j the key of position j.
at::Tensor future(std::int64_t rows, std::int64_t columns, std::int64_t first,
                  const at::TensorOptions& options);

/// The divisor of scores q·kᵀ for heads of that width: √width.
double score_divisor(std::int64_t head_width);

}  // namespace nanquest::trainer
