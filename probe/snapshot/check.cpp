#include "probe/snapshot/check.h"

#include <limits>
#include <set>
#include <string>

namespace nanquest {
namespace {

constexpr int kDeepest = 32;
constexpr std::size_t kMostDimensions = 64;  // PyTorch's own limit

Error fault(const std::string& where, std::size_t row, const std::string& what) {
  return {ErrorCode::bad_file, where + " row " + std::to_string(row) + ": " + what, ""};
}

/// Keeps the first fault, so that checks read as a list.
class Checker {
 public:
  explicit Checker(std::string table) : table_(std::move(table)) {}

  /// `index` is kNone or a row of a table with `size` rows.
  void index(std::size_t row, const char* what, std::int64_t index, std::size_t size) {
    if (index == kNone || (index >= 0 && static_cast<std::uint64_t>(index) < size)) return;
    fail(row, std::string(what) + " " + std::to_string(index) + " of " + std::to_string(size));
  }
  /// [first, first + count) lies inside a table with `size` rows.
  void range(std::size_t row, const char* what, std::int64_t first, std::int64_t count, std::size_t size) {
    if (first >= 0 && count >= 0 && static_cast<std::uint64_t>(first + count) <= size) return;
    fail(row, std::string(what) + " " + std::to_string(first) + "+" + std::to_string(count) + " of " +
                  std::to_string(size));
  }
  void require(std::size_t row, bool good, const char* what) {
    if (!good) fail(row, what);
  }
  const Status& status() const { return status_; }

 private:
  void fail(std::size_t row, const std::string& what) {
    if (status_.ok()) status_ = fault(table_, row, what);
  }
  std::string table_;
  Status status_;
};

/// False if a size is negative or the number of elements exceeds int64.
bool shape_fits(const std::vector<std::int64_t>& sizes) {
  std::int64_t count = 1;
  for (const std::int64_t n : sizes)
    if (n < 0 || __builtin_mul_overflow(count, n, &count)) return false;
  return true;
}

/// False if an offset of the view exceeds int64 (in bytes of 16-byte elements).
bool view_fits(const TensorRow& t) {
  std::int64_t low = t.storage_offset, high = t.storage_offset, step = 0;
  for (std::size_t i = 0; i < t.sizes.size(); ++i) {
    if (t.sizes[i] == 0) return true;
    if (__builtin_mul_overflow(t.sizes[i] - 1, t.strides[i], &step)) return false;
    std::int64_t& end = step < 0 ? low : high;
    if (__builtin_add_overflow(end, step, &end)) return false;
  }
  constexpr std::int64_t limit = std::numeric_limits<std::int64_t>::max() / 16;
  return low > -limit && high < limit;
}

/// Walks one value of the flattened list starting at `at`; false if it runs past `end` or too deep.
bool walk_value(const std::vector<ArgRow>& args, std::size_t& at, std::size_t end, int depth) {
  if (at >= end || depth > kDeepest) return false;
  const ArgRow& token = args[at++];
  if (token.kind != ArgKind::list) return true;
  if (token.integer < 0) return false;
  for (std::int64_t i = 0; i < token.integer; ++i)
    if (!walk_value(args, at, end, depth + 1)) return false;
  return true;
}

Status check_ops(const SnapshotDoc& doc) {
  Checker c("trace/ops");
  for (std::size_t i = 0; i < doc.ops.size() && c.status().ok(); ++i) {
    const OpRow& op = doc.ops[i];
    c.index(i, "module", op.module, doc.modules.size());
    c.index(i, "forward op", op.forward_op, doc.ops.size());
    c.index(i, "rng state", op.rng, doc.rng_states.size());
    c.index(i, "stack", op.stack, doc.stacks.size());
    c.range(i, "arguments", op.first_arg, op.arg_count, doc.args.size());
    c.range(i, "outputs", op.first_output, op.output_count, doc.tensors.size());
    c.range(i, "written tensors", op.first_written, op.written_count, doc.written.size());
    if (!c.status().ok()) break;
    std::size_t at = static_cast<std::size_t>(op.first_arg);
    const std::size_t end = at + static_cast<std::size_t>(op.arg_count);
    while (at < end && c.status().ok())
      c.require(i, walk_value(doc.args, at, end, 0), "its arguments do not nest properly");
  }
  return c.status();
}

Status check_tensors(const SnapshotDoc& doc) {
  Checker args("trace/args");
  for (std::size_t i = 0; i < doc.args.size() && args.status().ok(); ++i)
    args.index(i, "tensor", doc.args[i].tensor, doc.tensors.size());
  Checker c("trace/tensors");
  for (std::size_t i = 0; i < doc.tensors.size() && c.status().ok(); ++i) {
    const TensorRow& t = doc.tensors[i];
    c.index(i, "slot", t.slot, doc.slots.size());
    c.index(i, "stats", t.stats, doc.stats.size());
    c.require(i, t.sizes.size() <= kMostDimensions, "more than 64 dimensions");
    c.require(i, t.sizes.size() == t.strides.size(), "sizes and strides differ in length");
    c.require(i, shape_fits(t.sizes), "impossible shape");
    if (c.status().ok()) c.require(i, view_fits(t), "impossible strides");
  }
  return args.status().ok() ? c.status() : args.status();
}

Status check_named(const char* table, const std::vector<NamedTensor>& rows, std::size_t slots) {
  Checker c(table);
  for (std::size_t i = 0; i < rows.size() && c.status().ok(); ++i) {
    c.index(i, "slot", rows[i].slot, slots);
    c.require(i, rows[i].shape.size() <= kMostDimensions && shape_fits(rows[i].shape), "impossible shape");
  }
  return c.status();
}

Status check_list(const char* table, const std::vector<std::int32_t>& rows, std::size_t size) {
  Checker c(table);
  for (std::size_t i = 0; i < rows.size() && c.status().ok(); ++i) c.index(i, "index", rows[i], size);
  return c.status();
}

Status check_twin(const SnapshotDoc& doc) {
  Checker c("twin/values");
  c.require(0, doc.twin.ops >= 0 && static_cast<std::size_t>(doc.twin.ops) <= doc.ops.size(),
            "more ops are alike than there are");
  for (std::size_t i = 0; i < doc.twin.values.size() && c.status().ok(); ++i) {
    const TwinValue& value = doc.twin.values[i];
    c.index(i, "slot", value.slot, doc.slots.size());
    c.index(i, "op", value.op, doc.ops.size());
    c.require(i, (value.slot == kNone) != (value.op == kNone), "it stands for a slot or for a host write");
  }
  return c.status();
}

Status check_single(const SnapshotDoc& doc) {
  Checker c("trace");
  c.index(0, "loss", doc.loss, doc.tensors.size());
  if (!c.status().ok()) return c.status();
  Checker culprit("verdict/culprit");
  culprit.index(0, "op", doc.culprit.op, doc.ops.size());
  culprit.require(0, doc.culprit.first.size() <= kMostDimensions, "more than 64 dimensions");
  if (!culprit.status().ok()) return culprit.status();
  Checker samples("batch/@samples");
  samples.require(0, doc.sample_texts.empty() || doc.sample_texts.size() == doc.sample_ids.size(),
                  "as many texts as ids, or none");
  return samples.status();
}

Status check_history(const SnapshotDoc& doc) {
  std::set<std::string> names;
  for (std::size_t i = 0; i < doc.history.size(); ++i) {
    const SeriesTable& s = doc.history[i];
    const bool name_ok = !s.name.empty() &&
                         s.name.find_first_of(std::string("/\0", 2)) == std::string::npos &&
                         s.name.front() != '@' && s.name.front() != '.' && names.insert(s.name).second;
    if (!name_ok)
      return fault("history", i, "\"" + s.name + "\" can't be the name of a table, or comes twice");
    if (s.rows() * s.columns.size() != s.values.size())
      return fault("history", i, s.name + " is not rectangular");
  }
  return {};
}

}  // namespace

Status check_doc(const SnapshotDoc& doc) {
  const std::size_t ops = doc.ops.size(), tensors = doc.tensors.size(), slots = doc.slots.size();
  for (const Status& status :
       {check_ops(doc), check_tensors(doc), check_named("parameters", doc.parameters, slots),
        check_named("buffers", doc.buffers, slots), check_named("optimizer", doc.optimizer, slots),
        check_named("batch", doc.batch, slots), check_list("trace/written", doc.written, tensors),
        check_list("trace/gradients", doc.gradients, tensors),
        check_list("verdict/culprit/lineage", doc.culprit.lineage, ops),
        check_list("verdict/culprit/suppressed", doc.culprit.suppressed, ops), check_single(doc),
        check_twin(doc), check_history(doc)})
    if (!status) return status;
  return {};
}

}  // namespace nanquest
