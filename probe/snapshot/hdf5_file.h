/// Writes a new HDF5 file from front to back, without libhdf5. Internal to this room.
///
/// Reasons for not using libhdf5: a snapshot is about a hundred small datasets with three attributes each,
/// and the library takes 20 to 80 µs for each of them, which was five steps of a small training; it does not
/// survive a disk that fails; and it isn't thread-safe. A snapshot needs only groups, contiguous datasets and
/// scalar attributes. Reading uses the library, because other tools may have repacked the file.
///
/// Layout: user block, superblock, the bytes of the datasets in the order in which they were added, all
/// object headers. Small datasets are collected and written together; large ones are written at once.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "probe/snapshot/descriptor.h"
#include "probe/snapshot/hdf5_encode.h"
#include "probe/snapshot/sink.h"

namespace nanquest {

class Hdf5File final : public Sink {
 public:
  /// Creates the file `path`, or truncates an existing one; errors name `reported_as`. The first `user_block`
  /// bytes (512, 1024, …) stay zero.
  static Result<Hdf5File> create(const std::string& path, std::string reported_as, std::uint64_t user_block);

  Status group(const std::string& path, Attributes attributes) override;
  Status dataset(const std::string& path, DType dtype, const std::vector<std::uint64_t>& shape,
                 const void* data, Attributes attributes) override;
  /// Offset of the bytes of the last dataset, from the first byte of the file.
  std::uint64_t last_offset() const { return last_offset_; }

  /// Writes the object headers, `attributes` on the root, and last the superblock. Nothing may be added
  /// afterwards; the file stays open.
  Status finish(Attributes attributes);
  /// Of the open file, for reading and writing.
  int descriptor() const { return file_.get(); }
  Status close();

 private:
  struct Link {
    bool to_group = false;
    std::uint64_t at = 0;  ///< of a dataset: where its header starts in `headers_`; of a group: its index
  };
  struct Group {
    hdf5::Messages messages;
    std::map<std::string, Link> links;
  };

  Status add_link(const std::string& path, Link link);
  /// Appends bytes; `status_` keeps the first failure, after which nothing more is written.
  const Status& append(const void* data, std::uint64_t bytes, std::uint64_t alignment);
  const Status& flush();
  const Status& failed(const char* doing);

  std::string name_;
  Descriptor file_;
  std::uint64_t user_block_ = 0, written_ = 0, last_offset_ = 0;
  std::string waiting_, headers_;
  std::vector<Group> groups_{1};  ///< the root first, every group after its parent
  std::unordered_map<std::string, std::size_t> group_index_{{"", 0}};
  Status status_;
};

}  // namespace nanquest
