/// Small things that the parts of TraceRecorder share.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <cstdio>
#include <string>

#include "probe/observe/tensor_scan.h"

namespace nanquest {

/// "trace/slot_data/" and 17 give "trace/slot_data/000017".
inline std::string numbered(const char* prefix, std::size_t n) {
  char text[64];
  std::snprintf(text, sizeof text, "%s%06zu", prefix, n);
  return text;
}

/// Plain memory of an element type that the file format knows.
inline bool can_record(const at::Tensor& t) { return is_plain(t) && dtype_of(t.scalar_type()).has_value(); }

}  // namespace nanquest
