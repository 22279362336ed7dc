#include "trainer/data/token_data.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace nanquest::trainer {

at::Tensor filled_up(const at::Tensor& t, std::int64_t time, std::int64_t value) {
  return t.size(1) >= time ? t : at::constant_pad_nd(t, {0, time - t.size(1)}, value);
}

}  // namespace nanquest::trainer
