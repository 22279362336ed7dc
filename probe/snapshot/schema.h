/// The contents of a snapshot file by table and column, described once: the same function drives the writer
/// (File = TableFileWriter) and the reader (File = TableFileReader), so the two can't differ. Internal to
/// this room; README.md in this folder describes the same for h5py users.
///
/// VERSION RULE. kFormatMajor: increase it if a program that knows only the older format would misread the
/// file. kFormatMinor: increase it if something is added that an older program can ignore. In both cases add
/// a golden file under tests/golden; all older ones must still open.
#pragma once

#include "probe/snapshot/model.h"
#include "probe/snapshot/reference.h"
#include "probe/snapshot/tape.h"

namespace nanquest {

inline constexpr int kFormatMajor = 3;  // 3: values in other files
inline constexpr int kFormatMinor = 0;
/// Version of a file that refers to no other file: older programs can read it.
inline constexpr int kClosedMajor = 2;
inline constexpr int kClosedMinor =
    4;  // 1: the healthy twin; 2: graphs of compiled regions; 3: the tape; 4: its clips
inline constexpr const char* kFormatName = "nanquest.snapshot";
/// Name of the checksum of tensors (hash_bytes of probe/numerics/scan.h, defined in hash.h there). Another
/// checksum gets another name.
inline constexpr const char* kChecksumName = "nq64";
/// Name of the hash of tensors' contents in `hashes` (hash_contents, defined there too). Format 1 has
/// hash_bytes of the whole contents instead.
inline constexpr const char* kLadderName = "nq64p";

template <class File, class Rows>
void visit_named(File& file, const char* group, Rows& rows) {
  auto t = file.table(std::string(group) + "/@table", "named_tensors");
  t.text("name", rows, &NamedTensor::name);
  t.text("data", rows, &NamedTensor::data);
  t.number("dtype", rows, &NamedTensor::dtype);
  t.list("shape", rows, &NamedTensor::shape);
  t.number("slot", rows, &NamedTensor::slot);
}

template <class File, class Rows>
void visit_ops(File& file, Rows& rows) {
  auto t = file.table("trace/ops", "op_table");
  t.text("name", rows, &OpRow::name);
  t.text("overload", rows, &OpRow::overload);
  t.number("flags", rows, &OpRow::flags);
  t.number("phase", rows, &OpRow::phase);
  t.number("micro_batch", rows, &OpRow::micro_batch);
  t.number("module", rows, &OpRow::module);
  t.text("node", rows, &OpRow::node);
  t.number("forward_op", rows, &OpRow::forward_op);
  t.number("sequence", rows, &OpRow::sequence);
  t.number("first_arg", rows, &OpRow::first_arg);
  t.number("arg_count", rows, &OpRow::arg_count);
  t.number("first_output", rows, &OpRow::first_output);
  t.number("output_count", rows, &OpRow::output_count);
  t.number("first_written", rows, &OpRow::first_written);
  t.number("written_count", rows, &OpRow::written_count);
  t.number("rng", rows, &OpRow::rng);
  t.number("stack", rows, &OpRow::stack);
  t.text("host_data", rows, &OpRow::host_data);
}

template <class File, class Rows>
void visit_args(File& file, Rows& rows) {
  auto t = file.table("trace/args", "argument_table");
  t.number("kind", rows, &ArgRow::kind);
  t.number("tensor", rows, &ArgRow::tensor);
  t.number("integer", rows, &ArgRow::integer);
  t.number("real", rows, &ArgRow::real);
  t.number("imaginary", rows, &ArgRow::imaginary);
  t.text("text", rows, &ArgRow::text);
}

template <class File, class Rows>
void visit_tensors(File& file, Rows& rows) {
  auto t = file.table("trace/tensors", "tensor_table");
  t.number("slot", rows, &TensorRow::slot);
  t.number("dtype", rows, &TensorRow::dtype);
  t.number("flags", rows, &TensorRow::flags);
  t.number("storage_offset", rows, &TensorRow::storage_offset);
  t.list("sizes", rows, &TensorRow::sizes);
  t.list("strides", rows, &TensorRow::strides);
  t.number("stats", rows, &TensorRow::stats);
}

template <class File, class Rows>
void visit_slots(File& file, Rows& rows) {
  auto t = file.table("trace/slots", "slot_table");
  t.number("origin", rows, &Slot::origin);
  t.number("bytes", rows, &Slot::bytes);
  t.number("dtype", rows, &Slot::dtype);
  t.text("device", rows, &Slot::device);
  t.text("name", rows, &Slot::name);
  t.text("data", rows, &Slot::data);
}

template <class File, class Rows>
void visit_stats(File& file, Rows& rows) {
  auto t = file.table("stats", "stats_table");
  t.number("count", rows, &StatsRow::count);
  t.number("nan", rows, &StatsRow::nan);
  t.number("pos_inf", rows, &StatsRow::pos_inf);
  t.number("neg_inf", rows, &StatsRow::neg_inf);
  t.number("zero", rows, &StatsRow::zero);
  t.number("subnormal", rows, &StatsRow::subnormal);
  t.number("first_bad", rows, &StatsRow::first_bad);
  t.number("amax", rows, &StatsRow::amax);
  t.number("amin_nonzero", rows, &StatsRow::amin_nonzero);
  t.number("sum_squares", rows, &StatsRow::sum_squares);
  auto hashes = file.table("hashes", "hash_table");
  hashes.number("value", rows, &StatsRow::hash);
  hashes.number("present", rows, &StatsRow::has_hash);
}

template <class File, class Row>
void visit_culprit(File& file, Row& culprit) {
  auto t = file.table("verdict/culprit", "culprit");
  t.value("op", culprit.op);
  t.value("phase", culprit.phase);
  t.word("origin", culprit.origin);
  t.word("value", culprit.value);
  t.value("count", culprit.count);
  t.values("first", culprit.first);
  t.word("tensor_name", culprit.tensor_name);
  t.values("lineage", culprit.lineage);
  t.values("suppressed", culprit.suppressed);
}

template <class File, class Twin>
void visit_twin(File& file, Twin& twin) {
  auto t = file.table("twin", "twin");
  t.value("step", twin.step);
  t.value("ops", twin.ops);
  auto values = file.table("twin/values", "twin_values");
  values.number("slot", twin.values, &TwinValue::slot);
  values.number("op", twin.values, &TwinValue::op);
  values.text("data", twin.values, &TwinValue::data);
}

/// Every table except the history series (their columns vary) and the root attributes.
template <class File, class Doc>
void visit_doc(File& file, Doc& doc) {
  file.table("environment", "dictionary").dictionary(doc.environment);
  file.table("config", "dictionary").dictionary(doc.config);
  file.table("history/@samples", "sample_ids").text_lists("ids", doc.history_samples);
  {
    auto t = file.table("modules", "module_table");
    t.text("path", doc.modules, &ModuleRow::path);
    t.text("type", doc.modules, &ModuleRow::type);
  }
  visit_named(file, "parameters", doc.parameters);
  visit_named(file, "buffers", doc.buffers);
  visit_named(file, "optimizer", doc.optimizer);
  visit_named(file, "batch", doc.batch);
  {
    auto t = file.table("batch/@samples", "samples");
    t.texts("ids", doc.sample_ids);
    t.texts("texts", doc.sample_texts);
  }
  {
    auto t = file.table("rng/@table", "rng_states");
    t.word("start", doc.rng_data);
    t.texts("states", doc.rng_states);
  }
  {
    auto t = file.table("trace", "trace");
    t.value("gate", doc.gate);
    t.word("basis", doc.basis);
    t.value("loss", doc.loss);
    t.value("loss_scale", doc.loss_scale);
    t.values("gradients", doc.gradients);
    t.values("written", doc.written);
    t.text_lists("stacks", doc.stacks);
  }
  visit_ops(file, doc.ops);
  visit_args(file, doc.args);
  visit_tensors(file, doc.tensors);
  visit_slots(file, doc.slots);
  visit_stats(file, doc.stats);
  visit_culprit(file, doc.culprit);
  if (file.has("twin", doc.twin.step >= 0)) visit_twin(file, doc.twin);
}

/// Values whose bytes are in other files, for the whole snapshot.
template <class File, class Rows>
void visit_references(File& file, Rows& rows) {
  using Text = std::string FileReference::*;
  using Number = std::uint64_t FileReference::*;
  auto t = file.table("references", "reference_table");
  t.text("path", rows, &FileReference::path);
  t.number("dtype", rows, &FileReference::dtype);
  t.list("shape", rows, &FileReference::shape);
  t.text("file", rows, Text(&FileReference::file));
  t.text("from_here", rows, &FileReference::from_here);
  t.number("file_bytes", rows, Number(&FileReference::file_bytes));
  t.number("offset", rows, Number(&FileReference::offset));
  t.number("checksum", rows, &FileReference::checksum);
}

/// Tables of the tape, for a `file` that puts kTapePrefix before all names.
template <class File, class Tape>
void visit_tape(File& file, Tape& tape) {
  visit_doc(file, tape.trace);
  auto t = file.table("steps", "tape_steps");
  t.number("step", tape.steps, &TapeStep::step);
  t.number("gate", tape.steps, &TapeStep::gate);
  t.number("end", tape.steps, &TapeStep::end);
  t.number("loss_op", tape.steps, &TapeStep::loss_op);
  t.number("loss", tape.steps, &TapeStep::loss);
  t.number("rate", tape.steps, &TapeStep::rate);
  t.number("loss_value", tape.steps, &TapeStep::loss_value);
  if (file.has("clips", has_clips(tape))) {
    auto clips = file.table("clips", "tape_clips");
    clips.number("clip", tape.steps, &TapeStep::clip);
    clips.number("grad_norm", tape.steps, &TapeStep::grad_norm);
  }
  auto reads = file.table("reads", "tape_reads");
  reads.number("op", tape.reads, &TapeRead::op);
  reads.number("value", tape.reads, &TapeRead::value);
  reads.number("whole", tape.reads, &TapeRead::whole);
}

}  // namespace nanquest
