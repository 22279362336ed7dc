#include "tests/trace/steps.h"

namespace nanquest::testing {

SlotId Steps::slot(std::int64_t elements, SlotOrigin origin, const std::string& name) {
  Slot row;
  row.origin = origin;
  row.bytes = static_cast<std::uint64_t>(elements) * 4;
  row.dtype = DType::float32;
  row.name = name;
  doc.slots.push_back(row);
  return SlotId{doc.slots.size() - 1};
}

TensorId Steps::row(const View& view) {
  TensorRow row;
  row.slot = view.slot.row();
  row.dtype = view.dtype;
  row.storage_offset = view.offset;
  row.sizes = view.sizes;
  row.strides = view.strides;
  row.stats = static_cast<std::int32_t>(doc.stats.size());
  StatsRow stats;
  stats.count = 1;
  for (const std::int64_t size : view.sizes) stats.count *= static_cast<std::uint64_t>(size);
  stats.nan = view.bad.nan;
  stats.pos_inf = view.bad.pos_inf;
  stats.neg_inf = view.bad.neg_inf;
  stats.first_bad = stats.non_finite() ? 0 : -1;
  doc.stats.push_back(stats);
  doc.tensors.push_back(row);
  return TensorId{doc.tensors.size() - 1};
}

OpId Steps::op(const std::string& name, const std::vector<View>& arguments, const std::vector<View>& writes,
               std::uint32_t flags, Phase phase) {
  OpRow op;
  op.name = name;
  op.flags = flags;
  op.phase = phase;
  op.first_arg = static_cast<std::int32_t>(doc.args.size());
  op.arg_count = static_cast<std::int32_t>(arguments.size());
  for (const View& view : arguments) {
    ArgRow arg;
    arg.kind = ArgKind::tensor;
    arg.tensor = row(view).row();
    doc.args.push_back(arg);
  }
  op.first_output = static_cast<std::int32_t>(doc.tensors.size());
  op.output_count = op.written_count = static_cast<std::int32_t>(writes.size());
  op.first_written = static_cast<std::int32_t>(doc.written.size());
  for (const View& view : writes) doc.written.push_back(row(view).row());
  doc.ops.push_back(op);
  return OpId{doc.ops.size() - 1};
}

OpId Steps::loss(const std::string& name, const std::vector<View>& arguments, const View& result) {
  const OpId id = op(name, arguments, {result});
  doc.loss = get(doc, id).first_output;
  return id;
}

View whole(SlotId slot, std::int64_t n, BadCounts bad) {
  return part(slot, 0, n, bad);
}

View part(SlotId slot, std::int64_t from, std::int64_t to, BadCounts bad) {
  return {slot, from, {to - from}, {1}, bad};
}

std::vector<std::int32_t> numbers(std::initializer_list<OpId> ops) {
  std::vector<std::int32_t> rows;
  for (const OpId op : ops) rows.push_back(op.row());
  return rows;
}

}  // namespace nanquest::testing
