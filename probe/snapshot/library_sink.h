/// A Sink into a file that libhdf5 has open. Internal to this room.
#pragma once

#include <string>

#include "probe/snapshot/h5.h"
#include "probe/snapshot/sink.h"

namespace nanquest {

class LibrarySink final : public Sink {
 public:
  /// `path` is for messages only; `file` must stay open longer than this object.
  LibrarySink(hid_t file, std::string path) : file_(file), path_(std::move(path)) {}

  Status group(const std::string& path, Attributes attributes) override;
  Status dataset(const std::string& path, DType dtype, const std::vector<std::uint64_t>& shape,
                 const void* data, Attributes attributes) override;

 private:
  hid_t file_;
  std::string path_;
};

}  // namespace nanquest
