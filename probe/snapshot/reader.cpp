#include "probe/snapshot/reader.h"

#include <algorithm>
#include <exception>
#include <map>
#include <new>
#include <optional>
#include <utility>

#include "probe/numerics/scan.h"
#include "probe/snapshot/check.h"
#include "probe/snapshot/schema.h"
#include "probe/snapshot/seal.h"
#include "probe/snapshot/table_reader.h"

namespace nanquest {
namespace {

Error too_big(const std::string& path) {
  return {ErrorCode::bad_file, path + ": needs more memory than there is",
          "open it on a machine with more memory"};
}

Status read_root(const CheckedFile& file, SnapshotDoc& doc) {
  std::string format;
  std::int64_t complete = 0, rank = 0, world_size = 0;
  const hid_t root = file.root();
  if (!h5::get_attribute(root, "format", format) || format != kFormatName)
    return Error{ErrorCode::bad_file, file.path() + ": does not call itself a " + kFormatName, ""};
  if (!h5::get_attribute(root, "complete", complete) || complete != 1)
    return Error{ErrorCode::bad_file, file.path() + ": was never completed",
                 "its writer was stopped; use another one"};
  if (!h5::get_attribute(root, "writer", doc.writer) ||
      !h5::get_attribute(root, "created_utc", doc.created_utc) ||
      !h5::get_attribute(root, "host", doc.host) || !h5::get_attribute(root, "step", doc.step) ||
      !h5::get_attribute(root, "rank", rank) || !h5::get_attribute(root, "world_size", world_size))
    return Error{ErrorCode::bad_file, file.path() + ": a root attribute is missing", ""};
  if (doc.step < 0 || rank < 0 || rank > INT32_MAX || world_size < 1 || world_size > INT32_MAX)
    return Error{ErrorCode::bad_file, file.path() + ": step, rank or world size is impossible", ""};
  doc.rank = static_cast<std::int32_t>(rank);
  doc.world_size = static_cast<std::int32_t>(world_size);
  return {};
}

/// A tensor of the file, wherever its bytes are.
struct Held {
  DType dtype;
  const std::vector<std::int64_t>* shape;
  std::uint64_t elements, bytes;
  std::optional<std::uint64_t> checksum;
  bool in_one_piece;                         ///< a part can be read without the whole
  const FileReference* reference = nullptr;  ///< null: in the file itself
};

}  // namespace

struct SnapshotReader::Impl {
  CheckedFile file;
  ReaderLimits limits;
  SealInfo seal;
  SnapshotDoc doc;
  std::string path;
  std::map<std::string, FileReference> references;
  mutable ReferencedFiles others;

  /// Nothing if the file has no tensor of that path.
  std::optional<Held> find(const std::string& tensor) const;
  Status take_references(TableFileReader& tables);
};

std::optional<Held> SnapshotReader::Impl::find(const std::string& tensor) const {
  if (const auto at = file.datasets().find(tensor); at != file.datasets().end() && at->second.is_tensor) {
    const StoredDataset& d = at->second;
    return Held{d.dtype, &d.shape, d.elements, d.bytes, d.checksum, d.offset.has_value()};
  }
  const auto at = references.find(tensor);
  if (at == references.end()) return std::nullopt;
  const FileReference& r = at->second;
  return Held{r.dtype, &r.shape, elements_of(r), bytes_of(r), r.checksum, true, &r};
}

Status SnapshotReader::Impl::take_references(TableFileReader& tables) {
  if (!tables.has("references", false)) return {};
  std::vector<FileReference> rows;
  visit_references(tables, rows);
  if (!tables.ok()) return tables.status();
  for (FileReference& row : rows) {
    Status good = check_reference(row);
    if (good && (file.datasets().count(row.path) > 0 || references.count(row.path) > 0))
      good = Error{ErrorCode::bad_file, row.path + " is there twice", ""};
    if (!good)
      return Error{ErrorCode::bad_file, path + ": " + good.error().message,
                   "the file was not written by a sound nanquest"};
    std::string name = row.path;
    references.emplace(std::move(name), std::move(row));
  }
  return {};
}

SnapshotReader::SnapshotReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SnapshotReader::SnapshotReader(SnapshotReader&&) noexcept = default;
SnapshotReader& SnapshotReader::operator=(SnapshotReader&&) noexcept = default;
SnapshotReader::~SnapshotReader() = default;

Result<SnapshotReader> SnapshotReader::open(const std::string& path, ReaderLimits limits) try {
  const h5::Quiet quiet;
  Result<SealInfo> seal = check_seal(path, kFormatMajor);
  if (!seal) return seal.error();
  Result<CheckedFile> file = CheckedFile::open(path);
  if (!file) return file.error();
  auto impl =
      std::make_unique<Impl>(Impl{std::move(*file), limits, *seal, {}, path, {}, ReferencedFiles(path)});
  if (Status root = read_root(impl->file, impl->doc); !root) return root.error();
  if (seal->major < 2) impl->doc.hash_kind = HashKind::whole;
  TableFileReader tables(impl->file, limits.max_rows);
  visit_doc(tables, impl->doc);
  tables.read_history(impl->doc.history);
  if (!tables.ok()) return tables.status().error();
  if (Status taken = impl->take_references(tables); !taken) return taken.error();
  if (Status good = check_doc(impl->doc); !good)
    return Error{ErrorCode::bad_file, path + ": " + good.error().message,
                 "the file was not written by a sound nanquest"};
  return SnapshotReader(std::move(impl));
} catch (const std::bad_alloc&) {
  return too_big(path);
} catch (const std::exception& e) {
  return Error{ErrorCode::internal, path + ": " + e.what(), ""};
}

const std::string& SnapshotReader::path() const {
  return impl_->path;
}
const SnapshotDoc& SnapshotReader::doc() const {
  return impl_->doc;
}
bool SnapshotReader::has_tape() const {
  return impl_->file.has_group(std::string(kTapePrefix) + "steps");
}

Result<TapeDoc> SnapshotReader::read_tape() const try {
  const h5::Quiet quiet;
  if (!has_tape())
    return Error{ErrorCode::bad_file, impl_->path + ": holds no tape, the steps before the incident",
                 "record with nanquest run --tape"};
  TapeDoc tape;
  TableFileReader tables(impl_->file, impl_->limits.max_rows);
  tables.set_prefix(kTapePrefix);
  visit_tape(tables, tape);
  if (!tables.ok()) return tables.status().error();
  tape.trace.step = impl_->doc.step;
  tape.trace.rank = impl_->doc.rank;
  tape.trace.world_size = impl_->doc.world_size;
  tape.trace.writer = impl_->doc.writer;
  if (Status good = check_tape(tape); !good)
    return Error{ErrorCode::bad_file, impl_->path + ": " + good.error().message,
                 "the file was not written by a sound nanquest"};
  return tape;
} catch (const std::bad_alloc&) {
  return too_big(impl_->path);
} catch (const std::exception& e) {
  return Error{ErrorCode::internal, impl_->path + ": " + e.what(), ""};
}

int SnapshotReader::format_major() const {
  return impl_->seal.major;
}
int SnapshotReader::format_minor() const {
  return impl_->seal.minor;
}

bool SnapshotReader::has_tensor(const std::string& path) const {
  return impl_->find(path).has_value();
}

std::vector<FileReference> SnapshotReader::references() const {
  std::vector<FileReference> out;
  for (const auto& [path, reference] : impl_->references) out.push_back(reference);
  return out;
}

Result<std::string> SnapshotReader::where(const FileReference& reference) const {
  return impl_->others.where(reference);
}

Result<std::vector<TensorInfo>> SnapshotReader::tensors() const {
  std::vector<TensorInfo> out;
  for (const auto& [path, d] : impl_->file.datasets())
    if (d.is_tensor) out.push_back({path, d.dtype, d.shape, d.bytes});
  for (const auto& [path, r] : impl_->references) out.push_back({path, r.dtype, r.shape, bytes_of(r), true});
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return out;
}

Result<TensorData> SnapshotReader::read_tensor(const std::string& path) const {
  const auto stored = impl_->find(path);
  if (!stored) return Error{ErrorCode::bad_file, impl_->path + ": holds no tensor " + path, ""};
  Result<TensorData> tensor = read_range(path, 0, stored->elements);
  if (!tensor) return tensor;
  tensor->shape = *stored->shape;
  if (Status good = check(path, hash_bytes(tensor->bytes.data(), tensor->bytes.size())); !good)
    return good.error();
  return tensor;
}

Status SnapshotReader::check(const std::string& path, std::uint64_t hash) const {
  const auto stored = impl_->find(path);
  if (stored && stored->checksum == hash) return {};
  if (stored && stored->reference) return impl_->others.changed(*stored->reference);
  return Error{ErrorCode::bad_file, impl_->path + ": the bytes of " + path + " are damaged (checksum)",
               "copy the file again from where it was written"};
}

Result<TensorData> SnapshotReader::read_range(const std::string& path, std::uint64_t first,
                                              std::uint64_t count) const try {
  const h5::Quiet quiet;
  const auto stored = impl_->find(path);
  if (!stored) return Error{ErrorCode::bad_file, impl_->path + ": holds no tensor " + path, ""};
  const Held& d = *stored;
  if (first > d.elements || count > d.elements - first)
    return Error{ErrorCode::usage,
                 impl_->path + ": " + path + " has only " + std::to_string(d.elements) + " elements", ""};
  const std::uint64_t bytes = count * dtype_size(d.dtype);
  // Compressed data are decoded completely, even for a part.
  if (bytes > impl_->limits.max_tensor_bytes || (!d.in_one_piece && d.bytes > impl_->limits.max_tensor_bytes))
    return Error{ErrorCode::bad_file,
                 impl_->path + ": " + path + " has " + std::to_string(d.bytes) + " bytes, the limit is " +
                     std::to_string(impl_->limits.max_tensor_bytes),
                 ""};
  // A forged file may claim any size, so the other file must have that size before memory is allocated.
  if (d.reference)
    if (const auto there = impl_->others.where(*d.reference); !there) return there.error();
  TensorData out{d.dtype, {static_cast<std::int64_t>(count)}, {}};
  out.bytes.resize(bytes);
  const Status read = d.reference ? impl_->others.read(*d.reference, first, count, out.bytes.data())
                                  : impl_->file.read(path, first, count, out.bytes.data());
  if (!read) return read.error();
  return out;
} catch (const std::bad_alloc&) {
  return too_big(impl_->path + ": " + path);
} catch (const std::exception& e) {
  return Error{ErrorCode::internal, impl_->path + ": " + e.what(), ""};
}

}  // namespace nanquest
