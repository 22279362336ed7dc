#include <algorithm>
#include <cmath>
#include <map>

#include "probe/snapshot/writer.h"
#include "probe/tensor/tensor_scan.h"
#include "replay/case/values.h"
#include "replay/cli/commands.h"
#include "replay/lab/lab.h"
#include "replay/trace/compare.h"
#include "replay/verdict/replayed_paths.h"

namespace nanquest::cli {
namespace {

struct Columns {
  std::vector<double> amax;
  std::vector<std::int64_t> nan, inf, zero;
};

/// What an op leaves unwritten on purpose (`empty_like`) is no value of the step.
Columns columns_of(const SnapshotDoc& doc, const RunResult& run) {
  Columns c;
  for (std::size_t i = 0; i < run.ops.size(); ++i) {
    const OpOutcome& op = run.ops[i];
    const bool any = op.ran && !op.written.empty() && (doc.ops[i].flags & kOpUninitialised) == 0;
    double amax = any ? 0 : std::nan("");
    std::int64_t nan = any ? 0 : -1, inf = nan, zero = nan;
    for (const StatsRow& s : op.written) {
      amax = std::fmax(amax, s.amax);
      nan += static_cast<std::int64_t>(s.nan);
      inf += static_cast<std::int64_t>(s.pos_inf + s.neg_inf);
      zero += static_cast<std::int64_t>(s.zero);
    }
    c.amax.push_back(amax);
    c.nan.push_back(nan);
    c.inf.push_back(inf);
    c.zero.push_back(zero);
  }
  return c;
}

/// By op: how far the run is from the step as recorded, where both are finite.
std::vector<double> distances(const CompareResult& compared) {
  std::vector<double> off(compared.other.ops.size(), std::nan(""));
  for (const CompareRow& row : compared.rows) {
    const TensorDifference& d = row.difference;
    if (std::max(d.non_finite_recorded, d.non_finite_other) >= d.count) continue;
    double& worst = off[static_cast<std::size_t>(row.op)];
    worst = std::fmax(worst, d.max_abs);
  }
  return off;
}

template <class T>
Status write_column(SnapshotWriter& writer, const std::string& path, DType type,
                    const std::vector<T>& values) {
  const std::int64_t shape[] = {static_cast<std::int64_t>(values.size())};
  return writer.write_tensor(path, TensorView{type, shape, values.data()});
}

Status write_run(SnapshotWriter& writer, const SnapshotDoc& doc, const std::string& name,
                 const RunResult& run) {
  const Columns c = columns_of(doc, run);
  const auto at = [&](const char* column) { return replayed_column(name, column); };
  if (Status s = write_column(writer, at("amax"), DType::float64, c.amax); !s) return s;
  if (Status s = write_column(writer, at("nan"), DType::int64, c.nan); !s) return s;
  if (Status s = write_column(writer, at("inf"), DType::int64, c.inf); !s) return s;
  return write_column(writer, at("zero"), DType::int64, c.zero);
}

/// What one op was given and gave, by name.
using Values = std::map<std::string, at::Tensor>;

std::string output_name(std::size_t number) {
  return number == 0 ? "output" : "output " + std::to_string(number);
}

void note_arguments(const OpRow& op, const std::vector<c10::IValue>& arguments, Values& values) {
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].isTensor() && arguments[i].toTensor().defined()) {
      const std::string name = argument_name(op, i);
      values[name.empty() ? "input " + std::to_string(i) : name] = arguments[i].toTensor().clone();
    }
}

void note_outputs(const std::vector<at::Tensor>& outputs, Values& values) {
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].defined()) values[output_name(i)] = outputs[i].clone();
}

/// The culprit's values in a run with these options; `options` writes into `values`, which must outlive it.
void keep_values(const OpRow& op, std::int32_t row, RunOptions& options, Values& values) {
  options.edit.op_edit[row] = [&op, &values](std::vector<c10::IValue>& stack) {
    note_arguments(op, stack, values);
    return false;
  };
  options.on_op = [row, &values](std::int32_t ran, const std::vector<at::Tensor>& outputs) {
    if (ran == row) note_outputs(outputs, values);
  };
}

Status write_values(SnapshotWriter& writer, std::int32_t op, const std::string& run, const Values& values) {
  for (const auto& [name, tensor] : values) {
    const std::optional<DType> type = dtype_of(tensor.scalar_type());
    if (!type || tensor.is_complex() || tensor.numel() * 8 > kMostReplayedBytes) continue;
    const at::Tensor flat = tensor.cpu().contiguous();
    const std::vector<std::int64_t> shape = flat.sizes().vec();
    if (Status s = writer.write_tensor(replayed_values(op, name, run), {*type, shape, flat.const_data_ptr()});
        !s)
      return s;
  }
  return {};
}

/// The step in another precision, held against the step as recorded op by op.
Status write_compared(SnapshotWriter& writer, const Case& c, const std::string& name, Precision precision) {
  RunOptions options;
  options.precision = precision;
  Values values;
  if (c.op() != nullptr) keep_values(*c.op(), c.op_index(), options, values);
  const Result<CompareResult> compared = compare(c.lab()->replayer(), options);
  if (!compared) return write_run(writer, c.doc(), name, c.whole(precision));
  if (Status s = write_run(writer, c.doc(), name, compared->other); !s) return s;
  const std::string off = replayed_column(name, "off");
  if (Status s = write_column(writer, off, DType::float64, distances(*compared)); !s) return s;
  return write_values(writer, c.op_index(), name, values);
}

/// The trace with the statistics and the culprit that replay found: a step that was not watched was recorded
/// without them. Values stay in the recording.
void add_trace(const SnapshotDoc& found, SnapshotDoc& doc) {
  doc.basis = found.basis;
  doc.gate = found.gate;
  doc.loss = found.loss;
  doc.loss_scale = found.loss_scale;
  doc.gradients = found.gradients;
  doc.modules = found.modules;
  doc.slots = found.slots;
  doc.tensors = found.tensors;
  doc.args = found.args;
  doc.written = found.written;
  doc.ops = found.ops;
  doc.stats = found.stats;
  doc.stacks = found.stacks;
  doc.culprit = found.culprit;
  for (Slot& slot : doc.slots) slot.data.clear();
  for (OpRow& op : doc.ops) {
    op.host_data.clear();
    op.rng = kNone;
  }
}

}  // namespace

Status write_replay_file(const Case& c, const std::string& path) {
  auto writer = SnapshotWriter::create(path);
  if (!writer) return writer.error();
  const auto& [recorded, fp32, fp64] = kReplayedRuns;
  if (Status s = write_run(*writer, c.doc(), recorded, c.whole(Precision::as_recorded)); !s) return s;
  if (c.op() != nullptr) {
    Values values;
    note_arguments(*c.op(), c.values(c.op_index()).arguments, values);
    note_outputs(c.values(c.op_index()).outputs, values);
    if (Status s = write_values(*writer, c.op_index(), recorded, values); !s) return s;
  }
  if (Status s = write_compared(*writer, c, fp32, Precision::fp32); !s) return s;
  if (Status s = write_compared(*writer, c, fp64, Precision::fp64); !s) return s;
  SnapshotDoc doc;
  doc.step = c.doc().step;
  doc.rank = c.doc().rank;
  doc.world_size = c.doc().world_size;
  doc.writer = "nanquest-replay " NANQUEST_VERSION;
  doc.culprit.origin = c.culprit().origin;
  if (c.doc().basis == "survivors") add_trace(c.doc(), doc);
  if (Status s = writer->write_doc(doc); !s) return s;
  return writer->commit();
}

}  // namespace nanquest::cli
