// StepTables: records of ops as rows.
#include <ATen/ATen.h>

#include "probe/record/memory_views.h"
#include "probe/record/rows.h"
#include "probe/record/tables.h"
#include "probe/record/tokens.h"
#include "probe/record/value_watch.h"
#include "probe/trace/host_writes.h"

namespace nanquest {

using record::Header;
using record::OpRecord;
using record::Reader;

std::int32_t StepTables::module_row(const ModuleName& module) {
  const auto [at, fresh] =
      modules_.emplace(module.path, static_cast<std::int32_t>(recording.doc.modules.size()));
  if (fresh) recording.doc.modules.push_back({module.path, module.type});
  return at->second;
}

std::int32_t StepTables::add_tensor(Reader& reader) {
  const std::uint32_t token = step_.words.place_of(reader);
  const Header header = reader.header();
  TensorRow row;
  if (header.flags & kTensorUndefined) {
    row.flags = kTensorUndefined;
  } else {
    const std::size_t dim = header.dim;
    const bool opaque = (header.flags & kTensorOpaque) != 0;
    if (!opaque) row.storage_offset = reader.value<std::int64_t>();
    const std::int64_t* sizes = reader.numbers(dim);
    row.sizes.assign(sizes, sizes + dim);
    if (opaque) {
      row.flags = kTensorOpaque;
      row.dtype = nearest_dtype(static_cast<at::ScalarType>(header.scalar_type));
      row.strides.assign(dim, 0);
    } else {
      const std::int64_t* strides = reader.numbers(dim);
      row.strides.assign(strides, strides + dim);
      row.slot = header.number;
      row.dtype = dtype_of(static_cast<at::ScalarType>(header.scalar_type)).value_or(DType::uint8);
      row.flags = header.flags & ~std::uint32_t{record::kHostWriteBefore | record::kNewMemory};
    }
  }
  if (step_.watch) row.stats = step_.watch->stats_at(token);
  recording.doc.tensors.push_back(std::move(row));
  return static_cast<std::int32_t>(recording.doc.tensors.size()) - 1;
}

void StepTables::add_host_write(const record::HostWrite& write) {
  OpRow op;
  op.name = "nanquest::host_write";
  if (const record::SlotRecord& slot = step_.slots[write.slot]; slot.produced && slot.shared)
    op.overload = kSharedWrite;
  op.flags = kOpHostWrite;
  op.phase = write.phase;
  op.first_arg = static_cast<std::int32_t>(recording.doc.args.size());
  op.host_data = numbered("trace/host_writes/", recording.doc.ops.size());
  const at::Tensor bytes =
      write.data ? record::typed_bytes(write.data, write.bytes, write.type, {}) : write.on_device;
  if (write.data) recorders_.insert(write.data);
  recording.data.emplace_back(op.host_data, bytes);
  TensorRow row;
  row.slot = static_cast<std::int32_t>(write.slot);
  row.dtype = dtype_of(bytes.scalar_type()).value_or(DType::uint8);
  row.sizes = {bytes.numel()};
  row.strides = {1};
  row.stats = add_stats(bytes);
  op.first_output = static_cast<std::int32_t>(recording.doc.tensors.size());
  op.output_count = op.written_count = 1;
  op.first_written = static_cast<std::int32_t>(recording.doc.written.size());
  recording.doc.written.push_back(op.first_output);
  recording.doc.tensors.push_back(std::move(row));
  recording.doc.ops.push_back(std::move(op));
  stacks_.push_back(nullptr);
}

void StepTables::add_arguments(const OpRecord& record, OpRow& op) {
  Reader reader(step_.words.at(record.first_argument));
  std::vector<ArgRow> tokens(record.argument_tokens);
  for (ArgRow& row : tokens) {
    const Header header = reader.next();
    row.kind = header.kind;
    if (header.kind != ArgKind::tensor) (void)reader.header();
    switch (header.kind) {
      case ArgKind::none:
        break;
      case ArgKind::tensor:
        if (header.flags & record::kHostWriteBefore) add_host_write(step_.host_writes[next_host_write_++]);
        row.tensor = add_tensor(reader);
        break;
      case ArgKind::integer:
        row.integer = reader.value<std::int64_t>();
        break;
      case ArgKind::real:
        row.real = reader.value<double>();
        break;
      case ArgKind::boolean:
        row.integer = static_cast<unsigned char>(header.scalar_type);
        break;
      case ArgKind::complex:
        row.real = reader.value<double>();
        row.imaginary = reader.value<double>();
        break;
      case ArgKind::string: {
        const auto length = static_cast<std::size_t>(header.number);
        row.text.assign(reader.text(length), length);
        break;
      }
      case ArgKind::list:
        row.integer = header.number;
        row.text = reader.value<const char*>();
        break;
      case ArgKind::device:
      case ArgKind::generator:
        row.text = c10::Device(static_cast<c10::DeviceType>(header.scalar_type),
                               static_cast<c10::DeviceIndex>(header.number))
                       .str();
        break;
      case ArgKind::opaque:
        row.text = reader.value<const char*>();
        break;
    }
  }
  op.first_arg = static_cast<std::int32_t>(recording.doc.args.size());
  op.arg_count = static_cast<std::int32_t>(tokens.size());
  for (ArgRow& row : tokens) recording.doc.args.push_back(std::move(row));
}

void StepTables::add_outputs(const OpRecord& record, OpRow& op) {
  Reader reader(step_.words.at(record.first_output));
  op.first_written = static_cast<std::int32_t>(recording.doc.written.size());
  const auto wrote = [&](std::int32_t row) {
    recording.doc.written.push_back(row);
    ++op.written_count;
  };
  std::int32_t first = kNone;
  for (std::uint32_t i = 0; i < record.outputs; ++i) {
    const Header header = reader.next();
    const std::int32_t row = add_tensor(reader);
    if (first == kNone) first = row;
    if (header.slot_known() && (header.flags & record::kNewMemory)) wrote(row);
  }
  for (std::uint32_t i = 0; i < record.written; ++i) wrote(add_tensor(reader));
  op.first_output = first == kNone ? static_cast<std::int32_t>(recording.doc.tensors.size()) : first;
  op.output_count = static_cast<std::int32_t>(record.outputs);
}

void StepTables::add_nodes(std::uint32_t at, bool of_arguments) {
  for (; next_node_ < step_.nodes.size() && step_.nodes[next_node_].at == at; ++next_node_) {
    const record::MadeNode& node = step_.nodes[next_node_];
    if (of_arguments && node.writer == at) return;
    forward_ops_.try_emplace(sequence_key(node.thread, node.sequence), rows_[node.writer]);
  }
}

void StepTables::add_op(std::uint32_t index) {
  const OpRecord& record = step_.ops[index];
  OpRow op;
  op.name = record.traits->name;
  op.overload = record.traits->overload;
  op.flags = record::op_flags(record) | (step_.watch ? step_.watch->flags(index) : 0);
  op.phase = record.phase;
  op.micro_batch = record.micro_batch;
  op.sequence = record.sequence;
  if (record.module) op.module = module_row(*record.module);
  if (record.node) {
    op.node.assign(record.node, record.node_length);
    const auto forward = record.sequence >= 0
                             ? forward_ops_.find(sequence_key(record.thread, record.sequence))
                             : forward_ops_.end();
    if (forward != forward_ops_.end()) {
      op.forward_op = forward->second;
      op.module = recording.doc.ops[static_cast<std::size_t>(forward->second)].module;
    }
  }
  if (record.generator != kNone &&
      (step_.generators[static_cast<std::size_t>(record.generator)].on_cpu ||
       step_.generators[static_cast<std::size_t>(record.generator)].other.defined()))
    op.rng = add_generator(step_.generators[static_cast<std::size_t>(record.generator)]);
  add_arguments(record, op);
  const auto row = static_cast<std::int32_t>(recording.doc.ops.size());
  rows_.push_back(row);
  add_nodes(index, /*of_arguments=*/true);
  if (record.ended) add_outputs(record, op);
  if (record.made >= 0) {
    if ((op.phase != Phase::backward || record.recompute) && op.sequence < 0) op.sequence = record.made;
    forward_ops_.try_emplace(sequence_key(record.made_by, record.made), row);
  }
  add_nodes(index, /*of_arguments=*/false);
  const std::vector<record::OpaqueOutput>& kept = step_.kept.outputs();
  while (next_opaque_ < kept.size() && kept[next_opaque_].place.op == index) {
    const record::OpaqueOutput& output = kept[next_opaque_++];
    const std::string path = opaque_path(
        row, std::string(output.place.written ? "w" : "").append(std::to_string(output.place.number)));
    recording.data.emplace_back(path, output.value.to(at::kCPU));
    if (op.host_data.empty()) op.host_data = path;
  }
  recording.doc.ops.push_back(std::move(op));
  stacks_.push_back(index < step_.stacks.size() ? step_.stacks[index] : nullptr);
}

std::int32_t StepTables::add_generator(const record::GeneratorState& state) {
  const auto index = static_cast<std::int32_t>(recording.doc.rng_states.size());
  recording.doc.rng_states.push_back(numbered("rng/", static_cast<std::size_t>(index)));
  recording.data.emplace_back(recording.doc.rng_states.back(), record::packed(state));
  return index;
}

}  // namespace nanquest
