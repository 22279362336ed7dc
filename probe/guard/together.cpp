// What several processes that make a step together must decide alike (ProbeOptions::least).
#include "probe/guard/probe.h"

namespace nanquest::guard {
namespace {

/// The gate that all processes follow: the smaller number wins.
std::int64_t order_of(Gate gate) {
  return gate == Gate::non_finite ? 0 : gate == Gate::scale_overflow ? 1 : 2;
}

constexpr Gate kGates[] = {Gate::non_finite, Gate::scale_overflow, Gate::ok};

}  // namespace

void GuardedProbe::agree_on_gate(const StepInputs& inputs, Answer& answer) {
  if (!options_.least) return;
  const std::int64_t ranks = options_.world_size;
  const std::int64_t worst = options_.least(order_of(answer.gate) * ranks + options_.rank);
  const Gate gate = kGates[worst / ranks];
  if (gate == answer.gate) return;
  answer.gate = gate;
  answer.told.push_back({.kind = gate == Gate::non_finite ? Fact::rank_found_bad : Fact::rank_overflowed,
                         .step = inputs.step,
                         .number = worst % ranks});
  if (recording()) safely("gate", [&] { history_.regate(gate); });
}

bool GuardedProbe::all_run_again(bool this_one) {
  asked_again_ = true;
  return options_.least ? options_.least(this_one ? 1 : 0) == 1 : this_one;
}

void GuardedProbe::agree_on_update(std::int64_t step, Answer& answer) {
  if (!options_.least) return;
  // 0: the state is spoiled, 1: undone in time, 2: good.
  const std::int64_t own = answer.state_corrupt ? 0 : answer.ok() ? 2 : 1, worst = options_.least(own);
  if (worst == 2) return;
  const std::int64_t best = -options_.least(-own);
  if (worst == best) return;
  // Some processes have updated their weights and others have not.
  answer.gate = Gate::non_finite;
  answer.state_corrupt = true;
  answer.told.push_back({.kind = Fact::update_differs, .step = step});
}

}  // namespace nanquest::guard
