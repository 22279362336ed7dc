#include "tests/snapshot/rich_doc.h"

namespace nanquest::testing {
namespace {

template <class T>
void expect_bits(const std::vector<T>& got, const std::vector<T>& want, const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  if (got.empty()) return;  // an empty tensor needs no address
  EXPECT_EQ(std::memcmp(got.data(), want.data(), got.size() * sizeof(T)), 0) << what;
}

void expect_double(double got, double want, const char* what) {
  expect_bits<double>({got}, {want}, what);
}

void expect_op(const OpRow& a, const OpRow& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.overload, b.overload);
  EXPECT_EQ(a.flags, b.flags);
  EXPECT_EQ(a.phase, b.phase);
  EXPECT_EQ(a.micro_batch, b.micro_batch);
  EXPECT_EQ(a.module, b.module);
  EXPECT_EQ(a.node, b.node);
  EXPECT_EQ(a.forward_op, b.forward_op);
  EXPECT_EQ(a.sequence, b.sequence);
  EXPECT_EQ(a.first_arg, b.first_arg);
  EXPECT_EQ(a.arg_count, b.arg_count);
  EXPECT_EQ(a.first_output, b.first_output);
  EXPECT_EQ(a.output_count, b.output_count);
  EXPECT_EQ(a.first_written, b.first_written);
  EXPECT_EQ(a.written_count, b.written_count);
  EXPECT_EQ(a.rng, b.rng);
  EXPECT_EQ(a.stack, b.stack);
  EXPECT_EQ(a.host_data, b.host_data);
}

void expect_tensor_row(const TensorRow& a, const TensorRow& b) {
  EXPECT_EQ(a.slot, b.slot);
  EXPECT_EQ(a.dtype, b.dtype);
  EXPECT_EQ(a.flags, b.flags);
  EXPECT_EQ(a.storage_offset, b.storage_offset);
  EXPECT_EQ(a.sizes, b.sizes);
  EXPECT_EQ(a.strides, b.strides);
  EXPECT_EQ(a.stats, b.stats);
}

void expect_arg(const ArgRow& a, const ArgRow& b) {
  EXPECT_EQ(a.kind, b.kind);
  EXPECT_EQ(a.tensor, b.tensor);
  EXPECT_EQ(a.integer, b.integer);
  expect_double(a.real, b.real, "arg.real");
  expect_double(a.imaginary, b.imaginary, "arg.imaginary");
  EXPECT_EQ(a.text, b.text);
}

void expect_slot(const Slot& a, const Slot& b) {
  EXPECT_EQ(a.origin, b.origin);
  EXPECT_EQ(a.bytes, b.bytes);
  EXPECT_EQ(a.dtype, b.dtype);
  EXPECT_EQ(a.device, b.device);
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.data, b.data);
}

void expect_stats(const StatsRow& a, const StatsRow& b) {
  EXPECT_EQ(a.count, b.count);
  EXPECT_EQ(a.nan, b.nan);
  EXPECT_EQ(a.pos_inf, b.pos_inf);
  EXPECT_EQ(a.neg_inf, b.neg_inf);
  EXPECT_EQ(a.zero, b.zero);
  EXPECT_EQ(a.subnormal, b.subnormal);
  EXPECT_EQ(a.first_bad, b.first_bad);
  expect_double(a.amax, b.amax, "amax");
  expect_double(a.amin_nonzero, b.amin_nonzero, "amin_nonzero");
  expect_double(a.sum_squares, b.sum_squares, "sum_squares");
  EXPECT_EQ(a.hash, b.hash);
  EXPECT_EQ(a.has_hash, b.has_hash);
}

void expect_named(const NamedTensor& a, const NamedTensor& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.data, b.data);
  EXPECT_EQ(a.dtype, b.dtype);
  EXPECT_EQ(a.shape, b.shape);
  EXPECT_EQ(a.slot, b.slot);
}

void expect_module(const ModuleRow& a, const ModuleRow& b) {
  EXPECT_EQ(a.path, b.path);
  EXPECT_EQ(a.type, b.type);
}

void expect_series(const SeriesTable& a, const SeriesTable& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.columns, b.columns);
  expect_bits(a.values, b.values, "history/" + b.name);
}

void expect_culprit(const Culprit& a, const Culprit& b) {
  EXPECT_EQ(a.op, b.op);
  EXPECT_EQ(a.phase, b.phase);
  EXPECT_EQ(a.origin, b.origin);
  EXPECT_EQ(a.value, b.value);
  EXPECT_EQ(a.count, b.count);
  EXPECT_EQ(a.first, b.first);
  EXPECT_EQ(a.tensor_name, b.tensor_name);
  EXPECT_EQ(a.lineage, b.lineage);
  EXPECT_EQ(a.suppressed, b.suppressed);
}

void expect_twin_value(const TwinValue& a, const TwinValue& b) {
  EXPECT_EQ(a.slot, b.slot);
  EXPECT_EQ(a.op, b.op);
  EXPECT_EQ(a.data, b.data);
}

template <class Row>
void expect_rows(const char* what, const std::vector<Row>& got, const std::vector<Row>& want,
                 void (*expect)(const Row&, const Row&)) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i) {
    SCOPED_TRACE(std::string(what) + " row " + std::to_string(i));
    expect(got[i], want[i]);
  }
}

}  // namespace

void expect_same_doc(const SnapshotDoc& got, const SnapshotDoc& want) {
  EXPECT_EQ(got.step, want.step);
  EXPECT_EQ(got.twin.step, want.twin.step);
  EXPECT_EQ(got.twin.ops, want.twin.ops);
  expect_rows("twin", got.twin.values, want.twin.values, expect_twin_value);
  EXPECT_EQ(got.rank, want.rank);
  EXPECT_EQ(got.world_size, want.world_size);
  EXPECT_EQ(got.created_utc, want.created_utc);
  EXPECT_EQ(got.host, want.host);
  EXPECT_EQ(got.writer, want.writer);
  EXPECT_EQ(got.gate, want.gate);
  EXPECT_EQ(got.basis, want.basis);
  EXPECT_EQ(got.loss, want.loss);
  expect_double(got.loss_scale, want.loss_scale, "loss_scale");
  EXPECT_EQ(got.gradients, want.gradients);
  EXPECT_EQ(got.environment, want.environment);
  EXPECT_EQ(got.config, want.config);
  expect_rows("history", got.history, want.history, expect_series);
  EXPECT_EQ(got.history_samples, want.history_samples);
  expect_rows("modules", got.modules, want.modules, expect_module);
  expect_rows("parameters", got.parameters, want.parameters, expect_named);
  expect_rows("buffers", got.buffers, want.buffers, expect_named);
  expect_rows("optimizer", got.optimizer, want.optimizer, expect_named);
  expect_rows("batch", got.batch, want.batch, expect_named);
  EXPECT_EQ(got.sample_ids, want.sample_ids);
  EXPECT_EQ(got.sample_texts, want.sample_texts);
  EXPECT_EQ(got.rng_data, want.rng_data);
  expect_rows("slots", got.slots, want.slots, expect_slot);
  expect_rows("tensors", got.tensors, want.tensors, expect_tensor_row);
  expect_rows("args", got.args, want.args, expect_arg);
  EXPECT_EQ(got.written, want.written);
  expect_rows("ops", got.ops, want.ops, expect_op);
  expect_rows("stats", got.stats, want.stats, expect_stats);
  EXPECT_EQ(got.rng_states, want.rng_states);
  EXPECT_EQ(got.stacks, want.stacks);
  expect_culprit(got.culprit, want.culprit);
}

void expect_same_tape(const TapeDoc& got, const TapeDoc& want) {
  expect_same_doc(got.trace, want.trace);
  expect_rows(
      "tape/steps", got.steps, want.steps, +[](const TapeStep& a, const TapeStep& b) {
        EXPECT_EQ(a.step, b.step);
        EXPECT_EQ(a.gate, b.gate);
        EXPECT_EQ(a.end, b.end);
        EXPECT_EQ(a.loss_op, b.loss_op);
        EXPECT_EQ(a.loss, b.loss);
        expect_double(a.rate, b.rate, "tape.rate");
        expect_double(a.loss_value, b.loss_value, "tape.loss_value");
        expect_double(a.clip, b.clip, "tape.clip");
        expect_double(a.grad_norm, b.grad_norm, "tape.grad_norm");
      });
  expect_rows(
      "tape/reads", got.reads, want.reads, +[](const TapeRead& a, const TapeRead& b) {
        EXPECT_EQ(a.op, b.op);
        expect_double(a.value, b.value, "tape.value");
        EXPECT_EQ(a.whole, b.whole);
      });
}

}  // namespace nanquest::testing
