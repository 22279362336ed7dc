/// StepAnswer: what a session tells its caller at a boundary of a step.
#pragma once

#include <cstdint>
#include <string>

#include "probe/snapshot/model.h"
#include "probe/step/facts.h"

namespace nanquest::attach {

/// What a boundary of a step reports (a pass begins, an update begins, it is over).
struct StepAnswer {
  Gate gate = Gate::ok;
  std::int64_t step = 0;        ///< the step, if there is something to skip
  bool skip = false;            ///< the update should not be made (for a step that was given up: it was not)
  bool gradients_bad = false;   ///< the gradients hold NaN or Inf, which under data parallelism every rank
                                ///< sees
  bool scale_overflow = false;  ///< the loss scale is too high, whatever else is bad
  std::int64_t withheld =
      0;  ///< the device has left this update of an earlier step out (GateWord::number); else 0
  bool incident = false;  ///< something was found; see `told`
  bool stops = true;      ///< an incident at which the program may be ended, if so configured
  bool spike = false;     ///< something new about a finite step far out of its band; see `told`
  bool spiking = false;   ///< this step is outside its band, new or not
  bool forecast = false;  ///< a place is about to leave its format's range; see `told`
  Facts told;             ///< what there is to say (text_of makes a line of it)
  std::string file;       ///< the incident's snapshot, "" if none was written
};

}  // namespace nanquest::attach
