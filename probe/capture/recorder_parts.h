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

/// Where the values of an op that perhaps can't be run again lie: "trace/opaque/000017/0".
inline std::string opaque_path(std::int32_t op, const std::string& name) {
  return numbered("trace/opaque/", static_cast<std::size_t>(op)) + "/" + name;
}

/// Hash of a CPU storage's bytes.
std::uint64_t hash_of_storage(const c10::Storage& storage);

/// Plain memory of an element type that the file format knows.
inline bool can_record(const at::Tensor& t) { return is_plain(t) && dtype_of(t.scalar_type()).has_value(); }

}  // namespace nanquest
