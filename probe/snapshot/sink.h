/// The destination of groups and datasets of this room's files. Internal to this room.
///
/// There are two: a snapshot, written from front to back by hdf5_file.h, and a series, which grows and
/// therefore uses libhdf5.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "probe/base/dtype.h"
#include "probe/base/result.h"

namespace nanquest {

/// A scalar attribute: fixed-length UTF-8 text (cut to kMostAttributeText bytes) or a 64-bit number.
struct Attribute {
  std::string_view name;
  std::variant<std::string_view, std::int64_t, std::uint64_t> value;
};
using Attributes = std::initializer_list<Attribute>;

inline constexpr std::size_t kMostAttributeText = 4096;

class Sink {
 public:
  virtual ~Sink() = default;
  /// Creates the group `path`; its parent exists.
  virtual Status group(const std::string& path, Attributes attributes) = 0;
  /// Stores a dataset in an existing group; an empty shape makes a scalar. `data` is copied.
  virtual Status dataset(const std::string& path, DType dtype, const std::vector<std::uint64_t>& shape,
                         const void* data, Attributes attributes) = 0;
};

}  // namespace nanquest
