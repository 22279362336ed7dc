/// The hashes in nanquest's safetensors files, as writer and reader compute them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "probe/nanquest.h"

namespace nanquest::trainer {

/// The contents of the header in a form that does not depend on how its JSON is written: metadata by key,
/// without the entry of this hash itself, then name, type and shape of the tensors by name (their order, like
/// that of their bytes, is not unique if some are empty).
std::string head_text(const std::map<std::string, std::string>& metadata,
                      const std::vector<SafetensorsEntry>& tensors);

/// `hash` as 16 hex digits.
std::string hash_text(std::uint64_t hash);

}  // namespace nanquest::trainer
