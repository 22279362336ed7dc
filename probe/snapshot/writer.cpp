#include "probe/snapshot/writer.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "probe/numerics/scan.h"
#include "probe/snapshot/check.h"
#include "probe/snapshot/descriptor.h"
#include "probe/snapshot/hdf5_file.h"
#include "probe/snapshot/schema.h"
#include "probe/snapshot/seal.h"
#include "probe/snapshot/table_writer.h"

namespace nanquest {
namespace {

/// The file's path relative to the snapshot's folder; "" if not known.
std::string from_folder_of(const std::string& snapshot, const std::string& file) {
  std::error_code failed;
  const auto folder =
      std::filesystem::weakly_canonical(std::filesystem::absolute(snapshot, failed).parent_path(), failed);
  return failed ? "" : std::filesystem::path(file).lexically_relative(folder).string();
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
  /// The doc's root attributes.
  struct Root {
    std::string writer, created_utc, host;
    std::int64_t step, rank, world_size;
  };

  Impl(std::string final_path, std::string temporary_path, Hdf5File new_file)
      : path(std::move(final_path)),
        temporary(std::move(temporary_path)),
        file(std::move(new_file)),
        tables(file) {}
  ~Impl() { discard(); }

  /// Removes the unfinished file.
  void discard() {
    if (!temporary.empty()) ::unlink(temporary.c_str());
    temporary.clear();
  }

  Status finish();

  std::string path, temporary;
  Hdf5File file;
  TableFileWriter tables;
  std::vector<Extent> extents;
  std::vector<FileReference> references;
  std::optional<Root> root;  ///< from the doc
};

Status SnapshotWriter::Impl::finish() {
  const int major = references.empty() ? kClosedMajor : kFormatMajor;
  const int minor = references.empty() ? kClosedMinor : kFormatMinor;
  const std::string version = std::to_string(major) + "." + std::to_string(minor);
  Status written = file.finish({{"format", kFormatName},
                                {"format_version", version},
                                {"kind", "snapshot"},
                                {"kind_version", std::int64_t{1}},
                                {"checksum", kChecksumName},
                                {"ladder", kLadderName},
                                {"writer", root->writer},
                                {"created_utc", root->created_utc},
                                {"host", root->host},
                                {"step", root->step},
                                {"rank", root->rank},
                                {"world_size", root->world_size},
                                {"complete", std::int64_t{1}}});
  if (!written) return written;
  if (Status sealed = seal(file.descriptor(), path, major, minor, extents); !sealed) return sealed;
  if (Status closed = file.close(); !closed) return closed;
  if (std::rename(temporary.c_str(), path.c_str()) != 0) return system_error(path, "renaming");
  temporary.clear();
  return sync_directory_of(path);
}

SnapshotWriter::SnapshotWriter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SnapshotWriter::SnapshotWriter(SnapshotWriter&&) noexcept = default;
SnapshotWriter& SnapshotWriter::operator=(SnapshotWriter&&) noexcept = default;
SnapshotWriter::~SnapshotWriter() = default;

Result<SnapshotWriter> SnapshotWriter::create(const std::string& path) try {
  if (Status made = make_parents(path); !made) return made.error();
  const std::string temporary = temporary_beside(path);
  Result<Hdf5File> file = Hdf5File::create(temporary, path, kSealBytes);
  if (!file) return file.error();
  return SnapshotWriter(std::make_unique<Impl>(path, temporary, std::move(*file)));
} catch (const std::exception& e) {
  return Error{ErrorCode::internal, path + ": " + e.what(), ""};
}

Status SnapshotWriter::write_tensor(const std::string& path, const TensorView& tensor) try {
  if (!impl_ || impl_->temporary.empty()) return Error{ErrorCode::usage, "this writer is spent", ""};
  if (const char* fault = path_fault(path))
    return Error{ErrorCode::usage, "tensor path \"" + path + "\" can't be stored: " + fault, "rename it"};
  if (tensor.shape.size() > 8)
    return Error{ErrorCode::unsupported,
                 path + ": rank " + std::to_string(tensor.shape.size()) + " is above 8",
                 "store it flattened"};
  std::size_t bytes = dtype_size(tensor.dtype);
  std::vector<std::uint64_t> shape;
  for (const std::int64_t n : tensor.shape) {
    if (n < 0 || (n > 0 && bytes > SIZE_MAX / 2 / static_cast<std::size_t>(n)))
      return Error{ErrorCode::usage, path + ": impossible shape", ""};
    shape.push_back(static_cast<std::uint64_t>(n));
    bytes *= static_cast<std::size_t>(n);
  }
  if (bytes > 0 && tensor.data == nullptr) return Error{ErrorCode::usage, path + ": no data", ""};
  const std::size_t slash = path.rfind('/');
  if (slash != std::string::npos && !impl_->tables.make_group(path.substr(0, slash), "group"))
    return impl_->tables.status();
  if (Status written = impl_->file.dataset(path, tensor.dtype, shape, tensor.data,
                                           {{"kind", "tensor"},
                                            {"kind_version", std::int64_t{1}},
                                            {"dtype", dtype_name(tensor.dtype)},
                                            {"checksum", hash_bytes(tensor.data, bytes)}});
      !written)
    return written;
  if (bytes >= kSealedApart) impl_->extents.push_back({impl_->file.last_offset(), bytes});
  return {};
} catch (const std::exception& e) {
  return Error{ErrorCode::internal, path + ": " + e.what(), ""};
}

Status SnapshotWriter::write_reference(FileReference reference) try {
  if (!impl_ || impl_->temporary.empty() || impl_->root)
    return Error{ErrorCode::usage, "this writer takes no more references", ""};
  if (const char* fault = path_fault(reference.path))
    return Error{ErrorCode::usage, "tensor path \"" + reference.path + "\" can't be stored: " + fault,
                 "rename it"};
  if (Status good = check_reference(reference); !good)
    return Error{ErrorCode::usage, good.error().message, ""};
  if (reference.from_here.empty()) reference.from_here = from_folder_of(impl_->path, reference.file);
  impl_->references.push_back(std::move(reference));
  return {};
} catch (const std::exception& e) {
  return Error{ErrorCode::internal, reference.path + ": " + e.what(), ""};
}

Status SnapshotWriter::write_doc(const SnapshotDoc& doc, const TapeDoc* tape) try {
  if (!impl_ || impl_->temporary.empty()) return Error{ErrorCode::usage, "this writer is spent", ""};
  if (impl_->root) return Error{ErrorCode::usage, impl_->path + ": the doc was already written", ""};
  if (Status good = check_doc(doc); !good)
    return Error{ErrorCode::internal, impl_->path + ": not written, " + good.error().message, ""};
  if (Status good = tape ? check_tape(*tape) : Status(); !good)
    return Error{ErrorCode::internal, impl_->path + ": not written, " + good.error().message, ""};
  if (doc.hash_kind != HashKind::contents)
    return Error{ErrorCode::usage, impl_->path + ": not written, its hashes are those of format 1", ""};
  visit_doc(impl_->tables, doc);
  impl_->tables.write_history(doc.history);
  if (tape) {
    impl_->tables.set_prefix(kTapePrefix);
    visit_tape(impl_->tables, *tape);
    impl_->tables.set_prefix("");
  }
  if (!impl_->references.empty()) visit_references(impl_->tables, impl_->references);
  impl_->tables.write_strings();
  if (impl_->tables.ok())
    impl_->root = {doc.writer, doc.created_utc, doc.host, doc.step, doc.rank, doc.world_size};
  return impl_->tables.status();
} catch (const std::exception& e) {
  return Error{ErrorCode::internal, e.what(), ""};
}

Status SnapshotWriter::commit() try {
  if (!impl_ || impl_->temporary.empty()) return Error{ErrorCode::usage, "this writer is spent", ""};
  if (!impl_->root) return Error{ErrorCode::usage, impl_->path + ": commit before write_doc", ""};
  Status done = impl_->finish();
  impl_->discard();
  return done;
} catch (const std::exception& e) {
  return Error{ErrorCode::internal, e.what(), ""};
}

}  // namespace nanquest
