#include <cmath>

#include "probe/snapshot/writer.h"
#include "replay/cli/commands.h"

namespace nanquest::cli {
namespace {

struct Columns {
  std::vector<double> amax;
  std::vector<std::int64_t> nan, inf, zero;
};

Columns columns_of(const RunResult& run) {
  Columns c;
  for (const OpOutcome& op : run.ops) {
    const bool any = op.ran && !op.written.empty();
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

template <class T>
Status write_column(SnapshotWriter& writer, const std::string& path, DType type,
                    const std::vector<T>& values) {
  const std::int64_t shape[] = {static_cast<std::int64_t>(values.size())};
  return writer.write_tensor(path, TensorView{type, shape, values.data()});
}

Status write_run(SnapshotWriter& writer, const std::string& group, const RunResult& run) {
  const Columns c = columns_of(run);
  if (Status s = write_column(writer, group + "/amax", DType::float64, c.amax); !s) return s;
  if (Status s = write_column(writer, group + "/nan", DType::int64, c.nan); !s) return s;
  if (Status s = write_column(writer, group + "/inf", DType::int64, c.inf); !s) return s;
  return write_column(writer, group + "/zero", DType::int64, c.zero);
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
  const std::pair<const char*, Precision> runs[] = {{"replay/as_recorded", Precision::as_recorded},
                                                    {"replay/fp32", Precision::fp32},
                                                    {"replay/fp64", Precision::fp64}};
  for (const auto& [group, precision] : runs)
    if (Status s = write_run(*writer, group, c.whole(precision)); !s) return s;
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
