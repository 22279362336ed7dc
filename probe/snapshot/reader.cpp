#include "probe/snapshot/reader.h"

#include <exception>
#include <new>

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

}  // namespace

struct SnapshotReader::Impl {
  CheckedFile file;
  ReaderLimits limits;
  SealInfo seal;
  SnapshotDoc doc;
  std::string path;
};

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
  auto impl = std::make_unique<Impl>(Impl{std::move(*file), limits, *seal, {}, path});
  if (Status root = read_root(impl->file, impl->doc); !root) return root.error();
  if (seal->major < 2) impl->doc.hash_kind = HashKind::whole;
  TableFileReader tables(impl->file, limits.max_rows);
  visit_doc(tables, impl->doc);
  tables.read_history(impl->doc.history);
  if (!tables.ok()) return tables.status().error();
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
  const auto at = impl_->file.datasets().find(path);
  return at != impl_->file.datasets().end() && at->second.is_tensor;
}

Result<std::vector<TensorInfo>> SnapshotReader::tensors() const {
  std::vector<TensorInfo> out;
  for (const auto& [path, d] : impl_->file.datasets())
    if (d.is_tensor) out.push_back({path, d.dtype, d.shape, d.bytes});
  return out;
}

Result<TensorData> SnapshotReader::read_tensor(const std::string& path) const {
  const auto at = impl_->file.datasets().find(path);
  if (at == impl_->file.datasets().end() || !at->second.is_tensor)
    return Error{ErrorCode::bad_file, impl_->path + ": holds no tensor " + path, ""};
  Result<TensorData> tensor = read_range(path, 0, at->second.elements);
  if (!tensor) return tensor;
  tensor->shape = at->second.shape;
  if (Status good = check(path, hash_bytes(tensor->bytes.data(), tensor->bytes.size())); !good)
    return good.error();
  return tensor;
}

Status SnapshotReader::check(const std::string& path, std::uint64_t hash) const {
  const auto at = impl_->file.datasets().find(path);
  if (at != impl_->file.datasets().end() && at->second.checksum == hash) return {};
  return Error{ErrorCode::bad_file, impl_->path + ": the bytes of " + path + " are damaged (checksum)",
               "copy the file again from where it was written"};
}

Result<TensorData> SnapshotReader::read_range(const std::string& path, std::uint64_t first,
                                              std::uint64_t count) const try {
  const h5::Quiet quiet;
  const auto at = impl_->file.datasets().find(path);
  if (at == impl_->file.datasets().end() || !at->second.is_tensor)
    return Error{ErrorCode::bad_file, impl_->path + ": holds no tensor " + path, ""};
  const StoredDataset& d = at->second;
  if (first > d.elements || count > d.elements - first)
    return Error{ErrorCode::usage,
                 impl_->path + ": " + path + " has only " + std::to_string(d.elements) + " elements", ""};
  const std::uint64_t bytes = count * dtype_size(d.dtype);
  // Compressed data are decoded as a whole even for a part.
  if (bytes > impl_->limits.max_tensor_bytes || (!d.offset && d.bytes > impl_->limits.max_tensor_bytes))
    return Error{ErrorCode::bad_file,
                 impl_->path + ": " + path + " has " + std::to_string(d.bytes) + " bytes, the limit is " +
                     std::to_string(impl_->limits.max_tensor_bytes),
                 ""};
  TensorData out{d.dtype, {static_cast<std::int64_t>(count)}, {}};
  out.bytes.resize(bytes);
  if (Status read = impl_->file.read(path, first, count, out.bytes.data()); !read) return read.error();
  return out;
} catch (const std::bad_alloc&) {
  return too_big(impl_->path + ": " + path);
} catch (const std::exception& e) {
  return Error{ErrorCode::internal, impl_->path + ": " + e.what(), ""};
}

}  // namespace nanquest
