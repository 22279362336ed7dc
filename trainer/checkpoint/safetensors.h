/// Writes and reads the safetensors format: weights that any other tool can open.
///
///     Status s = write_safetensors("final.safetensors", model->parameters(), {{"step", "300"}});
///     Result<SafetensorsFile> file = read_safetensors("final.safetensors");
///
/// Layout: u64 little-endian N, N bytes of JSON, then the bytes of all tensors without holes. A file from
/// outside is not trusted: every number in it is checked before use.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>

#include "probe/base/result.h"
#include "trainer/task/named_tensors.h"

namespace nanquest::trainer {

struct SafetensorsFile {
  NamedTensors tensors;                         ///< on the CPU, owned, in the order of their bytes
  std::map<std::string, std::string> metadata;  ///< without nanquest's checksums
  bool whole = false;  ///< it has nanquest's checksums over header and data (a wrong one is an error)
  /// The tensor of that name, undefined if there is none.
  at::Tensor find(const std::string& name) const;
};

/// Writes `tensors` (any device, made contiguous one at a time) and `metadata`, completely or not at all,
/// with checksums over the data and over the header in the metadata. Error `io`, or `unsupported` for a dtype
/// that the format lacks.
Status write_safetensors(const std::string& path, const NamedTensors& tensors,
                         const std::map<std::string, std::string>& metadata);

/// Reads a whole file. Non-finite values are legal in this format and are not an error. Errors are `bad_file`
/// (or `io`) with the path and the reason: truncation, overlap, holes, overflow, duplicate names, checksum.
/// Files larger than `largest_bytes` are refused before any allocation.
Result<SafetensorsFile> read_safetensors(const std::string& path, std::uint64_t largest_bytes = 1ULL << 40);

}  // namespace nanquest::trainer
