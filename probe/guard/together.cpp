// What several processes that make a step together decide alike (ProbeOptions::least).
#include "probe/guard/probe.h"
#include "probe/step/one_line.h"

namespace nanquest::guard {
namespace {

/// Which of two gates all have to follow: the smaller one.
std::int64_t order_of(Gate gate) {
  return gate == Gate::non_finite ? 0 : gate == Gate::scale_overflow ? 1 : 2;
}

constexpr Gate kGates[] = {Gate::non_finite, Gate::scale_overflow, Gate::ok};

}  // namespace

void GuardedProbe::agree_on_gate(const StepInputs& inputs, StepReport& report) {
  if (!options_.least) return;
  const std::int64_t ranks = options_.world_size;
  const std::int64_t worst = options_.least(order_of(report.gate) * ranks + options_.rank);
  const Gate gate = kGates[worst / ranks];
  if (gate == report.gate) return;
  report.gate = gate;
  append(report.summary,
         "step " + std::to_string(inputs.step) + ": rank " + std::to_string(worst % ranks) +
             (gate == Gate::non_finite ? " found it not finite" : "'s loss scale overflowed"));
  if (recording()) safely("gate", [&] { record_.regate(gate); });
}

bool GuardedProbe::all_run_again(bool this_one) {
  asked_again_ = true;
  return options_.least ? options_.least(this_one ? 1 : 0) == 1 : this_one;
}

void GuardedProbe::agree_on_update(std::int64_t step, StepReport& report) {
  if (!options_.least) return;
  // 0: the state is spoiled, 1: undone in time, 2: good.
  const std::int64_t own = report.state_corrupt ? 0 : report.ok() ? 2 : 1, worst = options_.least(own);
  if (worst == 2) return;
  const std::int64_t best = -options_.least(-own);
  if (worst == best) return;
  // Some have moved their weights and others have not.
  report.gate = Gate::non_finite;
  report.state_corrupt = true;
  append(report.summary,
         "step " + std::to_string(step) + ": the update went wrong on one process and not on another");
}

}  // namespace nanquest::guard
