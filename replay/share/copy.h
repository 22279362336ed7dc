/// copy: a snapshot written again with other tables and other bytes. What the new tables do not name is not
/// copied.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include "probe/snapshot/reader.h"

namespace nanquest {

/// Which tensors of a file go into its copy, and under which path: old path to new one.
using CopiedPaths = std::map<std::string, std::string>;

/// Calls `f` with every path of a stored tensor in the doc's tables, as a reference; empty ones too. Values
/// of opaque ops have paths by their op's number and are not among them (opaque_folder).
template <class Doc, class F>
void each_path(Doc& doc, const F& f) {
  for (auto* named : {&doc.parameters, &doc.buffers, &doc.optimizer, &doc.batch})
    for (auto& tensor : *named) f(tensor.data);
  for (auto& slot : doc.slots) f(slot.data);
  for (auto& op : doc.ops) f(op.host_data);
  for (auto& value : doc.twin.values) f(value.data);
  f(doc.rng_data);
  for (auto& state : doc.rng_states) f(state);
}

/// Where the values of ops that can't be run again are: "trace/opaque/", then six digits of the op.
extern const char* const kOpaqueValues;

/// The op that a path of opaque values belongs to; kNone for any other path.
std::int32_t opaque_op(const std::string& path);

/// Paths of the graphs of the doc's compiled regions, to which its ops refer by number.
std::set<std::string> region_graph_paths(const SnapshotDoc& doc);

/// Every tensor that the doc names, that is such a graph, or that belongs to one of its opaque ops, under its
/// own path.
CopiedPaths named_paths(const SnapshotReader& file, const SnapshotDoc& doc);

/// Writes `doc` (and `tape`), which must have the new paths, and the tensors of `from` that `paths` names.
/// `change` may replace the bytes of a tensor, given its old path. Complete or absent (`io`: the disk).
Status write_copy(const SnapshotReader& from, const SnapshotDoc& doc, const CopiedPaths& paths,
                  const std::function<void(const std::string& path, TensorData& tensor)>& change,
                  const std::string& out, const TapeDoc* tape = nullptr);

/// Writes all of `from`, with every value in the copy itself: it needs no other file then. `usage` if it
/// needs none already.
Status write_embedded(const SnapshotReader& from, const std::string& out);

/// Refuses (`usage`) a path for a copy that exists: neither the original nor anything else is overwritten.
Status free_place(const std::string& out);

}  // namespace nanquest
