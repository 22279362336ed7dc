/// repro_memory: arguments that share memory. Private to replay/report.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace nanquest {

/// Memory that an op writes and reads through several of its arguments: views of it must stay views.
struct SharedMemory {
  std::string name;     ///< "memory0"
  at::Tensor elements;  ///< all that the views reach, one dimension, in the type of the first view
  std::int64_t begin;   ///< its start in the storage, in bytes
};
/// By storage.
using SharedMemories = std::map<const void*, SharedMemory>;

/// The memory that arguments share and that an op writes through one of them (`written`, one per argument).
SharedMemories shared_memory(const std::vector<c10::IValue>& arguments, const std::vector<bool>& written);

/// Copies of the arguments that share memory in the same way.
std::vector<c10::IValue> copies_of(const std::vector<c10::IValue>& arguments);

}  // namespace nanquest
