/// A new HDF5 file, written front to back without libhdf5. Internal to this room.
///
/// Why not with libhdf5: a snapshot is some hundred small datasets with three attributes each, and the
/// library takes 20 to 80 µs for each of them, which was five steps of a small training; it doesn't survive a
/// disk that fails; and it isn't thread-safe. What a snapshot needs of the format is little: groups,
/// contiguous datasets, scalar attributes. Reading is another matter (other tools may have repacked the file)
/// and stays with the library.
///
/// Layout: user block, superblock, the bytes of the datasets in the order they came, all object headers.
/// Small datasets are gathered and written together; large ones go to the disk at once.
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
  /// Makes the file `path`, or empties the one that is there; errors name `reported_as`. The first
  /// `user_block` bytes (512, 1024, …) stay zero.
  static Result<Hdf5File> create(const std::string& path, std::string reported_as, std::uint64_t user_block);

  Status group(const std::string& path, Attributes attributes) override;
  Status dataset(const std::string& path, DType dtype, const std::vector<std::uint64_t>& shape,
                 const void* data, Attributes attributes) override;
  /// Where the bytes of the last dataset lie, from the first byte of the file.
  std::uint64_t last_offset() const { return last_offset_; }

  /// Writes the object headers, `attributes` on the root, and the superblock as the very last. Nothing may be
  /// added after it; the file stays open.
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
  /// Puts bytes behind what is there; `status_` has the first failure, after it nothing more is written.
  const Status& append(const void* data, std::uint64_t bytes, std::uint64_t alignment);
  const Status& flush();
  const Status& failed(const char* doing);

  std::string name_;
  Descriptor file_;
  std::uint64_t user_block_ = 0, written_ = 0, last_offset_ = 0;
  std::string waiting_, headers_;
  std::vector<Group> groups_{1};  ///< the root first, every group after the one that holds it
  std::unordered_map<std::string, std::size_t> group_index_{{"", 0}};
  Status status_;
};

}  // namespace nanquest
