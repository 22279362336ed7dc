/// The safetensors format, written and read by ourselves: weights that any other tool can open.
///
///     Status s = write_safetensors("final.safetensors", model->parameters(), {{"step", "300"}});
///     Result<SafetensorsFile> file = read_safetensors("final.safetensors");
///
/// Layout: u64 little-endian N, N bytes of JSON, then the bytes of all tensors without holes. A file from
/// outside is hostile until shown otherwise: every number of it is checked before it is used.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>

#include "probe/base/result.h"
#include "trainer/task/named_tensors.h"

namespace nanquest::trainer {

struct SafetensorsFile {
  NamedTensors tensors;                         ///< on the CPU, owned, in the order of their bytes
  std::map<std::string, std::string> metadata;  ///< without our checksums
  bool whole = false;  ///< it has our checksums over header and data (both are right, else it is an error)
  /// The tensor of that name, undefined if there is none.
  at::Tensor find(const std::string& name) const;
};

/// Writes `tensors` (any device, made contiguous one at a time) and `metadata`, complete or not at all, with
/// checksums over the data and over the header in the metadata. Error `io`, or `unsupported` for a dtype that
/// the format lacks.
Status write_safetensors(const std::string& path, const NamedTensors& tensors,
                         const std::map<std::string, std::string>& metadata);

/// Reads a whole file. Non-finite values are legal in this format and are not an error. Errors are `bad_file`
/// (or `io`) and name the path and what is wrong: truncation, overlap, holes, overflow, duplicate names,
/// checksum. Files larger than `largest_bytes` are refused before anything is allocated.
Result<SafetensorsFile> read_safetensors(const std::string& path, std::uint64_t largest_bytes = 1ULL << 40);

}  // namespace nanquest::trainer
