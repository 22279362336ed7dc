#include "tests/record/side_by_side.h"

#include <cstring>

namespace nanquest::testing {
namespace {

constexpr std::uint32_t kByValues =
    kOpBirth | kOpBirthFiniteAbove | kOpBirthStays | kOpHidesDamage | kOpHidesNothing;

void expect_same_ops(const SnapshotDoc& a, const SnapshotDoc& b) {
  ASSERT_EQ(a.ops.size(), b.ops.size());
  for (std::size_t i = 0; i < a.ops.size(); ++i) {
    SCOPED_TRACE("op " + std::to_string(i) + " " + a.ops[i].name);
    const OpRow &x = a.ops[i], &y = b.ops[i];
    EXPECT_EQ(SnapshotDoc::qualified_name(x), SnapshotDoc::qualified_name(y));
    EXPECT_EQ(x.flags & ~kByValues, y.flags & ~kByValues);
    EXPECT_EQ(x.phase, y.phase);
    EXPECT_EQ(x.micro_batch, y.micro_batch);
    EXPECT_EQ(x.module, y.module);
    EXPECT_EQ(x.node, y.node);
    EXPECT_EQ(x.forward_op, y.forward_op);
    EXPECT_EQ(x.sequence, y.sequence);
    EXPECT_EQ(x.first_arg, y.first_arg);
    EXPECT_EQ(x.arg_count, y.arg_count);
    EXPECT_EQ(x.first_output, y.first_output);
    EXPECT_EQ(x.output_count, y.output_count);
    EXPECT_EQ(x.first_written, y.first_written);
    EXPECT_EQ(x.written_count, y.written_count);
    EXPECT_EQ(x.rng, y.rng);
    EXPECT_EQ(x.host_data, y.host_data);
  }
}

void expect_same_tensors(const SnapshotDoc& a, const SnapshotDoc& b) {
  ASSERT_EQ(a.tensors.size(), b.tensors.size());
  for (std::size_t i = 0; i < a.tensors.size(); ++i) {
    SCOPED_TRACE("tensor row " + std::to_string(i));
    EXPECT_EQ(a.tensors[i].slot, b.tensors[i].slot);
    EXPECT_EQ(a.tensors[i].dtype, b.tensors[i].dtype);
    EXPECT_EQ(a.tensors[i].flags, b.tensors[i].flags);
    EXPECT_EQ(a.tensors[i].storage_offset, b.tensors[i].storage_offset);
    EXPECT_EQ(a.tensors[i].sizes, b.tensors[i].sizes);
    EXPECT_EQ(a.tensors[i].strides, b.tensors[i].strides);
  }
}

void expect_same_arguments(const SnapshotDoc& a, const SnapshotDoc& b) {
  ASSERT_EQ(a.args.size(), b.args.size());
  for (std::size_t i = 0; i < a.args.size(); ++i) {
    SCOPED_TRACE("token " + std::to_string(i));
    EXPECT_EQ(a.args[i].kind, b.args[i].kind);
    EXPECT_EQ(a.args[i].tensor, b.args[i].tensor);
    EXPECT_EQ(a.args[i].integer, b.args[i].integer);
    EXPECT_EQ(std::memcmp(&a.args[i].real, &b.args[i].real, sizeof(double)), 0);
    EXPECT_EQ(std::memcmp(&a.args[i].imaginary, &b.args[i].imaginary, sizeof(double)), 0);
    EXPECT_EQ(a.args[i].text, b.args[i].text);
  }
}

}  // namespace

StepNames names_of(const StepState& state) {
  return {named_memory(state.parameters),
          named_memory(state.buffers),
          named_memory(state.optimizer),
          named_memory(state.batch),
          {}};
}

StepTables tables_of(Recorder& recorder, std::int64_t number, const StepState& state,
                     const at::Tensor& loss) {
  StepTables tables(recorder, *recorder.find(number));
  tables.build(names_of(state));
  SnapshotDoc& doc = tables.recording.doc;
  doc.loss = tables.describe(loss);
  for (const auto& [name, p] : state.parameters) doc.gradients.push_back(tables.describe(p.grad()));
  return tables;
}

void expect_same_tables(const SnapshotDoc& a, const SnapshotDoc& b) {
  expect_same_ops(a, b);
  expect_same_tensors(a, b);
  expect_same_arguments(a, b);
  EXPECT_EQ(a.written, b.written);
  EXPECT_EQ(a.rng_states, b.rng_states);
  ASSERT_EQ(a.modules.size(), b.modules.size());
  for (std::size_t i = 0; i < a.modules.size(); ++i) {
    EXPECT_EQ(a.modules[i].path, b.modules[i].path);
    EXPECT_EQ(a.modules[i].type, b.modules[i].type);
  }
  ASSERT_EQ(a.slots.size(), b.slots.size());
  for (std::size_t i = 0; i < a.slots.size(); ++i) {
    SCOPED_TRACE("slot " + std::to_string(i));
    EXPECT_EQ(a.slots[i].origin, b.slots[i].origin);
    EXPECT_EQ(a.slots[i].bytes, b.slots[i].bytes);
    EXPECT_EQ(a.slots[i].dtype, b.slots[i].dtype);
    EXPECT_EQ(a.slots[i].device, b.slots[i].device);
    EXPECT_EQ(a.slots[i].name, b.slots[i].name);
    EXPECT_EQ(a.slots[i].data, b.slots[i].data);
  }
}

void expect_same_data(const Recording& a, const Recording& b) {
  const std::map<std::string, at::Tensor> theirs(b.data.begin(), b.data.end());
  EXPECT_EQ(a.data.size(), theirs.size());
  for (const auto& [path, tensor] : a.data) {
    ASSERT_TRUE(theirs.count(path)) << path;
    const at::Tensor& other = theirs.at(path);
    ASSERT_EQ(tensor.scalar_type(), other.scalar_type()) << path;
    ASSERT_EQ(tensor.nbytes(), other.nbytes()) << path;
    const at::Tensor x = tensor.contiguous(), y = other.contiguous();
    if (tensor.nbytes()) {
      EXPECT_EQ(std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()), 0) << path;
    }
  }
}

}  // namespace nanquest::testing
