#include "probe/observe/step_scope.h"

#include <utility>

namespace nanquest {
namespace {

thread_local Phase phase_now = Phase::forward;
thread_local std::int32_t micro_batch_now = 0;

}  // namespace

Phase set_phase(Phase phase) {
  return std::exchange(phase_now, phase);
}
PhaseScope::PhaseScope(Phase phase) : before_(set_phase(phase)) {}
PhaseScope::~PhaseScope() {
  phase_now = before_;
}
Phase current_phase() {
  return phase_now;
}
void set_micro_batch(std::int32_t index) {
  micro_batch_now = index;
}
std::int32_t current_micro_batch() {
  return micro_batch_now;
}

}  // namespace nanquest
