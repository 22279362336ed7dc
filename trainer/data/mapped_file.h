/// A file as memory, which the system reads on access.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "probe/base/result.h"

namespace nanquest::trainer {

/// Read-only bytes of a file. Copies share them; the last one unmaps them. Shortening the file while it is in
/// use ends the program.
class MappedFile {
 public:
  /// `bad_file`, naming the path; an empty file too.
  static Result<MappedFile> open(const std::string& path);

  std::span<const std::byte> bytes() const { return {data_.get(), size_}; }
  std::size_t size() const { return size_; }

 private:
  std::shared_ptr<const std::byte> data_;
  std::size_t size_ = 0;
};

}  // namespace nanquest::trainer
