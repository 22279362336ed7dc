/// An untrusted HDF5 file: everything in it is checked before anything is read. Internal to this room.
///
/// Refused: links that are not hard, external and virtual storage, filters other than shuffle, deflate and
/// fletcher32, ranks above 8, datasets that claim more bytes than the file holds (or 1000 × their compressed
/// bytes), more than a million objects, groups deeper than 16. Datasets of a type that no version of this
/// format uses are skipped. Uncompressed data are read directly from the file, not through libhdf5.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "probe/base/dtype.h"
#include "probe/base/result.h"
#include "probe/snapshot/descriptor.h"
#include "probe/snapshot/h5.h"

namespace nanquest {

/// A dataset that passed the checks.
struct StoredDataset {
  DType dtype = DType::uint8;
  std::vector<std::int64_t> shape;
  std::uint64_t elements = 0, bytes = 0;
  std::optional<std::uint64_t> offset;  ///< of contiguous data in the file
  bool is_tensor = false;               ///< kind = "tensor"
  std::optional<std::uint64_t> checksum;
};

class CheckedFile {
 public:
  /// Opens without following any link and walks all objects. `swmr` for a file that may be growing.
  static Result<CheckedFile> open(const std::string& path, bool swmr = false);

  hid_t root() const { return file_.get(); }
  const std::string& path() const { return path_; }
  /// Key: path without a leading '/'.
  const std::map<std::string, StoredDataset>& datasets() const { return datasets_; }
  bool has_group(const std::string& name) const { return groups_.count(name) != 0; }

  /// Copies elements [first, first + count) of the flattened dataset to `out`, which has room for them.
  Status read(const std::string& name, std::uint64_t first, std::uint64_t count, std::byte* out) const;

 private:
  Status walk(const std::string& group, hid_t id, int depth);
  Status look_at(const std::string& name, hid_t dataset);
  /// Shape and size of a dataset whose rank was checked.
  Status take_shape(const std::string& name, hid_t space, StoredDataset& out) const;
  /// Where its bytes are; checks that they can be there.
  Status take_place(const std::string& name, hid_t dataset, H5D_layout_t layout, StoredDataset& out) const;
  /// The dtype of a dataset without a dtype attribute.
  std::optional<DType> guess_dtype(hid_t type) const;
  /// Slices [first, first + count) of the first axis; for a scalar its only element.
  bool read_slices(const std::string& name, const StoredDataset& d, std::uint64_t first, std::uint64_t count,
                   std::byte* out) const;
  Error refuse(const std::string& what) const;

  std::string path_;
  h5::Id file_;
  Descriptor raw_;
  std::uint64_t file_bytes_ = 0;
  std::uint64_t slack_ = 0;  ///< of a growing file: chunks that have an address but are not written yet
  std::size_t objects_ = 0;
  std::vector<h5::Id> types_;  ///< by DType
  std::map<std::string, StoredDataset> datasets_;
  std::set<std::string> groups_;
};

}  // namespace nanquest
