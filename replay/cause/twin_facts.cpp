#include "replay/cause/twin_facts.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "probe/tensor/tensor_scan.h"
#include "replay/case/values.h"
#include "replay/verdict/numbers.h"

namespace nanquest {
namespace {

bool speaks_of_magnitudes(Label label) {
  return label == Label::fp16_overflow || label == Label::exp_overflow || label == Label::norm_overflow ||
         label == Label::loss_scale;
}

/// The largest magnitudes of one argument of the culprit, here and in the healthy step.
struct Largest {
  double here = 0, in_health = 0;
};

/// The results, in a run, of the op that last wrote an argument.
std::optional<double> written_amax(const Case& c, const RunResult& run, OpId writer, SlotId slot) {
  const auto rows = c.graph().written(writer);
  const std::vector<StatsRow>& stats = run.ops[writer.index()].written;
  for (std::size_t i = 0; i < rows.size() && i < stats.size(); ++i)
    if (c.graph().slot(rows[i]) == slot) return stats[i].amax;
  return std::nullopt;
}

std::optional<Largest> largest(const Case& c, TwinRun& twin, const RunResult& run, TensorId row,
                               OpId reader) {
  const TraceGraph& graph = c.graph();
  const SlotId slot = graph.slot(row);
  if (!slot || !at::isFloatingType(scalar_type_of(graph.tensor(row).dtype))) return std::nullopt;
  if (const OpId writer = graph.producer(row, reader)) {
    const auto here = written_amax(c, c.whole(Precision::as_recorded), writer, slot);
    const auto in_health = written_amax(c, run, writer, slot);
    if (here && in_health) return Largest{*here, *in_health};
    return std::nullopt;
  }
  const StatsRow* here = graph.stats(row);
  const auto in_health = here ? twin.stats_of_outside(row) : std::nullopt;
  return in_health ? std::optional(Largest{here->amax, in_health->amax}) : std::nullopt;
}

/// The input that differs most; nothing if the two steps are not the same up to there.
std::optional<Largest> largest_input(const Case& c) {
  TwinRun* const twin = c.twin();
  const RunResult* const run = twin ? twin->run() : nullptr;
  if (!run || !c.op() || !(OpId{c.op_index()} < twin->end())) return std::nullopt;
  std::optional<Largest> most;
  const OpId op{c.op_index()};
  for (const Case::TensorArgument& argument : c.tensor_arguments(op.row())) {
    const auto found = largest(c, *twin, *run, TensorId{argument.tensor}, op);
    if (found && found->here > 0 && (!most || found->here * most->in_health > most->here * found->in_health))
      most = found;
  }
  return most;
}

}  // namespace

std::optional<double> times_health(const Case& c) {
  const auto most = largest_input(c);
  return most ? std::optional(most->here / most->in_health) : std::nullopt;
}

void add_twin_facts(const Case& c, const Finding& finding, Verdict& v) {
  TwinRun* const twin = c.twin();
  if (!twin) return;
  const std::string batch = "the batch of step " + std::to_string(twin->step());
  const TwinRun::Health health = twin->health();
  if (health != TwinRun::Health::unknown)
    v.evidence.push_back({"the same step with " + batch, health == TwinRun::Health::well
                                                             ? "healthy"
                                                             : "fails as well: it is not this batch"});
  if (!speaks_of_magnitudes(finding.label)) return;
  if (const auto most = largest_input(c))
    v.evidence.push_back(
        {"largest finite input of " + c.op_text(c.op_index()),
         number_text(most->here) + " here, " + number_text(most->in_health) + " on " + batch});
}

}  // namespace nanquest
