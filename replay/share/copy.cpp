#include "replay/share/copy.h"

#include <charconv>
#include <filesystem>
#include <optional>
#include <utility>

#include "probe/observe/op_traits.h"
#include "probe/snapshot/writer.h"
#include "probe/trace/regions.h"

namespace nanquest {

const char* const kOpaqueValues = "trace/opaque/";

std::int32_t opaque_op(const std::string& path) {
  const std::string_view prefix = kOpaqueValues;
  if (!path.starts_with(prefix)) return kNone;
  std::int32_t op = kNone;
  const auto [end, code] = std::from_chars(path.data() + prefix.size(), path.data() + path.size(), op);
  return code == std::errc() && end != path.data() + path.size() && *end == '/' ? op : kNone;
}

std::set<std::string> region_graph_paths(const SnapshotDoc& doc) {
  std::set<std::string> paths;
  for (const OpRow& op : doc.ops)
    if (op.name == kCompiledRegion) paths.insert(region_graph_path(region_call(doc, op).graph));
  return paths;
}

CopiedPaths named_paths(const SnapshotReader& file, const SnapshotDoc& doc) {
  CopiedPaths paths;
  each_path(doc, [&](const std::string& path) {
    if (!path.empty() && file.has_tensor(path)) paths[path] = path;
  });
  for (const std::string& path : region_graph_paths(doc))
    if (file.has_tensor(path)) paths[path] = path;
  const auto all = file.tensors();
  if (!all) return paths;
  for (const TensorInfo& tensor : *all) {
    const std::int32_t op = opaque_op(tensor.path);
    if (op >= 0 && static_cast<std::size_t>(op) < doc.ops.size()) paths[tensor.path] = tensor.path;
  }
  return paths;
}

Status write_copy(const SnapshotReader& from, const SnapshotDoc& doc, const CopiedPaths& paths,
                  const std::function<void(const std::string& path, TensorData& tensor)>& change,
                  const std::string& out, const TapeDoc* tape) {
  auto writer = SnapshotWriter::create(out);
  if (!writer) return writer.error();
  for (const auto& [path, target] : paths) {
    auto tensor = from.read_tensor(path);
    if (!tensor) return tensor.error();
    if (change) change(path, *tensor);
    const TensorView view{tensor->dtype, tensor->shape, tensor->bytes.data()};
    if (Status written = writer->write_tensor(target, view); !written) return written;
  }
  if (Status written = writer->write_doc(doc, tape); !written) return written;
  return writer->commit();
}

Status write_embedded(const SnapshotReader& from, const std::string& out) {
  if (from.references().empty())
    return Error{ErrorCode::usage, from.path() + ": holds all of its values, no other file is needed with it",
                 "copy it as it is"};
  std::optional<TapeDoc> tape;
  if (from.has_tape()) {
    auto read = from.read_tape();
    if (!read) return read.error();
    tape = std::move(read).value();
  }
  const auto all = from.tensors();
  if (!all) return all.error();
  CopiedPaths paths;
  for (const TensorInfo& tensor : *all) paths[tensor.path] = tensor.path;
  return write_copy(from, from.doc(), paths, {}, out, tape ? &*tape : nullptr);
}

Status free_place(const std::string& out) {
  std::error_code ignored;
  if (std::filesystem::exists(std::filesystem::symlink_status(out, ignored)))
    return Error{ErrorCode::usage, out + ": there is something of that name already",
                 "choose another name with -o, or remove it"};
  return {};
}

}  // namespace nanquest
