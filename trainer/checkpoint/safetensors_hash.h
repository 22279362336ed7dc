/// The hashes in safetensors files of ours, as writer and reader compute them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "probe/nanquest.h"

namespace nanquest::trainer {

/// What the header says, in a form that does not depend on how its JSON is written: metadata by key, without
/// the entry of this hash itself, then name, type and shape of the tensors by name (their order, as that of
/// their bytes, is not unique where some are empty).
std::string head_text(const std::map<std::string, std::string>& metadata,
                      const std::vector<SafetensorsEntry>& tensors);

/// `hash` as 16 hex digits.
std::string hash_text(std::uint64_t hash);

}  // namespace nanquest::trainer
