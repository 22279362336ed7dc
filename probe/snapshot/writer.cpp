#include "probe/snapshot/writer.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <exception>

#include "probe/numerics/scan.h"
#include "probe/snapshot/check.h"
#include "probe/snapshot/descriptor.h"
#include "probe/snapshot/disk.h"
#include "probe/snapshot/schema.h"
#include "probe/snapshot/seal.h"
#include "probe/snapshot/table_writer.h"

namespace nanquest {
namespace {

h5::Id create_file(const std::string& path, h5::Disk& disk) {
  const h5::Id creation(H5Pcreate(H5P_FILE_CREATE), H5Pclose);
  H5Pset_userblock(creation.get(), kSealBytes);
  H5Pset_obj_track_times(creation.get(), false);
  const h5::Id access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  // The 1.10 format has checksummed metadata: one more thing that damage must get past.
  H5Pset_libver_bounds(access.get(), H5F_LIBVER_V110, H5F_LIBVER_V110);
  H5Pset_fclose_degree(access.get(), H5F_CLOSE_STRONG);
  H5Pset_meta_block_size(access.get(),
                         1 << 16);  // metadata lie together, so that sealing reads few stretches
  H5Pset_small_data_block_size(access.get(), 1 << 15);
  return disk.create(path, creation.get(), access.get());
}

/// Empty if the path can be stored, else what is wrong with it.
const char* path_fault(const std::string& path) {
  if (path.empty()) return "it is empty";
  if (path.find('\0') != std::string::npos) return "it holds a zero byte";
  for (std::size_t start = 0; start <= path.size();) {
    const std::size_t end = std::min(path.find('/', start), path.size());
    const std::string_view part = std::string_view(path).substr(start, end - start);
    if (part.empty() || part == "." || part == "..") return "a part of it is empty, \".\" or \"..\"";
    if (part.front() == '@') return "names that begin with '@' are kept for tables";
    start = end + 1;
  }
  return nullptr;
}

}  // namespace

struct SnapshotWriter::Impl {
  Impl(std::string final_path, std::string temporary_path, std::unique_ptr<h5::Disk> its_disk,
       h5::Id open_file)
      : path(std::move(final_path)),
        temporary(std::move(temporary_path)),
        disk(std::move(its_disk)),
        file(std::move(open_file)),
        tables(file.get(), path) {}
  ~Impl() { discard(); }

  /// Closes and removes the unfinished file.
  void discard() {
    if (temporary.empty()) return;
    const h5::Quiet quiet;
    file.reset();
    ::unlink(temporary.c_str());
    temporary.clear();
  }

  Status write_root(const SnapshotDoc& doc);
  Status finish();

  std::string path, temporary;
  std::unique_ptr<h5::Disk> disk;
  h5::Id file;
  TableFileWriter tables;
  std::vector<Extent> extents;
  bool has_doc = false;
};

Status SnapshotWriter::Impl::write_root(const SnapshotDoc& doc) {
  const hid_t root = file.get();
  const std::string version = std::to_string(kFormatMajor) + "." + std::to_string(kFormatMinor);
  const bool ok = h5::set_attribute(root, "format", std::string_view(kFormatName)) &&
                  h5::set_attribute(root, "format_version", version) && h5::set_kind(root, "snapshot") &&
                  h5::set_attribute(root, "checksum", std::string_view(kChecksumName)) &&
                  h5::set_attribute(root, "writer", doc.writer) &&
                  h5::set_attribute(root, "created_utc", doc.created_utc) &&
                  h5::set_attribute(root, "host", doc.host) &&
                  h5::set_attribute(root, "step", std::int64_t{doc.step}) &&
                  h5::set_attribute(root, "rank", std::int64_t{doc.rank}) &&
                  h5::set_attribute(root, "world_size", std::int64_t{doc.world_size});
  return ok ? Status() : disk->failure(path, "writing attributes", ErrorCode::internal);
}

Status SnapshotWriter::Impl::finish() {
  if (!h5::set_attribute(file.get(), "complete", std::int64_t{1}))
    return disk->failure(path, "completing the file", ErrorCode::internal);
  if (file.reset() < 0 || !disk->ok()) return disk->failure(path, "writing", ErrorCode::io);
  if (Status sealed = seal_file(temporary, kFormatMajor, kFormatMinor, extents); !sealed) return sealed;
  if (std::rename(temporary.c_str(), path.c_str()) != 0) return system_error(path, "renaming");
  temporary.clear();
  return sync_directory_of(path);
}

SnapshotWriter::SnapshotWriter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SnapshotWriter::SnapshotWriter(SnapshotWriter&&) noexcept = default;
SnapshotWriter& SnapshotWriter::operator=(SnapshotWriter&&) noexcept = default;
SnapshotWriter::~SnapshotWriter() = default;

Result<SnapshotWriter> SnapshotWriter::create(const std::string& path) try {
  const h5::Quiet quiet;
  if (Status made = make_parents(path); !made) return made.error();
  const std::string temporary = temporary_beside(path);
  auto disk = std::make_unique<h5::Disk>();
  h5::Id file = create_file(temporary, *disk);
  if (!file || !disk->ok()) {
    const Error error = disk->failure(path, "creating", ErrorCode::io);
    file.reset();
    ::unlink(temporary.c_str());
    return error;
  }
  return SnapshotWriter(std::make_unique<Impl>(path, temporary, std::move(disk), std::move(file)));
} catch (const std::exception& e) {
  return Error{ErrorCode::internal, path + ": " + e.what(), ""};
}

Status SnapshotWriter::write_tensor(const std::string& path, const TensorView& tensor) try {
  const h5::Quiet quiet;
  if (!impl_ || impl_->temporary.empty()) return Error{ErrorCode::usage, "this writer is spent", ""};
  if (const char* fault = path_fault(path))
    return Error{ErrorCode::usage, "tensor path \"" + path + "\" can't be stored: " + fault, "rename it"};
  if (tensor.shape.size() > 8)
    return Error{ErrorCode::unsupported,
                 path + ": rank " + std::to_string(tensor.shape.size()) + " is above 8",
                 "store it flattened"};
  std::size_t bytes = dtype_size(tensor.dtype);
  std::vector<hsize_t> shape;
  for (const std::int64_t n : tensor.shape) {
    if (n < 0 || (n > 0 && bytes > SIZE_MAX / 2 / static_cast<std::size_t>(n)))
      return Error{ErrorCode::usage, path + ": impossible shape", ""};
    shape.push_back(static_cast<hsize_t>(n));
    bytes *= static_cast<std::size_t>(n);
  }
  if (bytes > 0 && tensor.data == nullptr) return Error{ErrorCode::usage, path + ": no data", ""};
  if (!impl_->disk->ok()) return impl_->disk->failure(impl_->path, "writing", ErrorCode::io);
  const std::size_t slash = path.rfind('/');
  if (slash != std::string::npos && !impl_->tables.make_group(path.substr(0, slash), "group"))
    return impl_->tables.status();
  const h5::Id dataset = h5::write_dataset(impl_->file.get(), path.c_str(), tensor.dtype, shape, tensor.data);
  if (!dataset || !h5::set_kind(dataset.get(), "tensor") ||
      !h5::set_attribute(dataset.get(), "dtype", dtype_name(tensor.dtype)) ||
      !h5::set_attribute(dataset.get(), "checksum", hash_bytes(tensor.data, bytes)) || !impl_->disk->ok())
    return impl_->disk->failure(impl_->path, "writing " + path, ErrorCode::internal);
  if (bytes >= kSealedApart) impl_->extents.push_back({H5Dget_offset(dataset.get()), bytes});
  return {};
} catch (const std::exception& e) {
  return Error{ErrorCode::internal, path + ": " + e.what(), ""};
}

Status SnapshotWriter::write_doc(const SnapshotDoc& doc) try {
  const h5::Quiet quiet;
  if (!impl_ || impl_->temporary.empty()) return Error{ErrorCode::usage, "this writer is spent", ""};
  if (impl_->has_doc) return Error{ErrorCode::usage, impl_->path + ": the doc was already written", ""};
  if (Status good = check_doc(doc); !good)
    return Error{ErrorCode::internal, impl_->path + ": not written, " + good.error().message, ""};
  if (Status root = impl_->write_root(doc); !root) return root;
  visit_doc(impl_->tables, doc);
  impl_->tables.write_history(doc.history);
  impl_->tables.write_strings();
  if (!impl_->disk->ok()) return impl_->disk->failure(impl_->path, "writing", ErrorCode::io);
  impl_->has_doc = impl_->tables.ok();
  return impl_->tables.status();
} catch (const std::exception& e) {
  return Error{ErrorCode::internal, e.what(), ""};
}

Status SnapshotWriter::commit() try {
  const h5::Quiet quiet;
  if (!impl_ || impl_->temporary.empty()) return Error{ErrorCode::usage, "this writer is spent", ""};
  if (!impl_->has_doc) return Error{ErrorCode::usage, impl_->path + ": commit before write_doc", ""};
  const Status done = impl_->finish();
  impl_->discard();
  return done;
} catch (const std::exception& e) {
  return Error{ErrorCode::internal, e.what(), ""};
}

}  // namespace nanquest
