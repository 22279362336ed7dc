#include "trainer/task/causal.h"

#include <ATen/ATen.h>

#include <cmath>

namespace nanquest::trainer {

at::Tensor future(std::int64_t rows, std::int64_t columns, std::int64_t first,
                  const at::TensorOptions& options) {
  return at::ones({rows, columns}, options.dtype(at::kBool)).triu(first + 1);
}

double score_divisor(std::int64_t head_width) {
  return std::sqrt(static_cast<double>(head_width));
}

}  // namespace nanquest::trainer
