/// open_probe: the probe of a run, with the run's settings, weights and numbers.
#pragma once

#include <memory>

#include "trainer/loop/config.h"
#include "trainer/optim/optimizer.h"
#include "trainer/task/task.h"

namespace nanquest::trainer {

/// Opens the run directory for writing and declares all that is watched or logged; of a rehearsal a probe
/// that writes nothing. `ranks`, `task` and `optimizer` must outlive it. Errors are `Probe::create`'s.
Result<std::unique_ptr<Probe>> open_probe(const LoopConfig& config, Group& ranks, const Task& task,
                                          const Optimizer& optimizer);

}  // namespace nanquest::trainer
