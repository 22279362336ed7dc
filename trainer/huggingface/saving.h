/// Writes the folder of a model. Inside this room only.
#pragma once

#include <cstdint>
#include <string>

#include "probe/base/result.h"
#include "trainer/task/named_tensors.h"

namespace nanquest::trainer {

/// Weights larger than this are written in several files.
inline constexpr std::uint64_t kShardBytes = std::uint64_t{5} << 30;

/// Writes `tensors` into `folder`: model.safetensors, or shards of at most `shard_bytes` (or of one tensor)
/// and their index. Weight files with other names are removed.
Status write_weights(const std::string& folder, const NamedTensors& tensors,
                     std::uint64_t shard_bytes = kShardBytes);

/// Copies the small files of `from` that belong to a model but are neither weights nor config.json:
/// tokenizer, generation settings, templates.
Status copy_companions(const std::string& from, const std::string& folder);

/// config.json of `from`, with the weights' format if given: "float32".
Status write_config(const std::string& from, const std::string& folder, const std::string& format);

}  // namespace nanquest::trainer
