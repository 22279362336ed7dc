/// Awaited: a look at a step's gradients that is on its way, with what its answer is understood by.
#pragma once

#include <cstdint>

#include "probe/attach/losses.h"
#include "probe/step/gate.h"
#include "probe/step/run_band.h"

namespace nanquest::attach {

/// What the caller knows when an update begins.
struct Update {
  double lr = 0;
  double loss_scale = 1;        ///< of gradients that are still scaled: the optimizer unscales them itself
  bool scale_overflow = false;  ///< a loss scaler found an overflow and keeps this update from being made
  at::Tensor scale = {},
             found_inf = {};  ///< where a device holds these two: read together with the gradients
  bool takes_word = false;    ///< the optimizer can leave this update out on the device (GateWord)
  std::vector<at::Tensor> gradients_to_come = {};  ///< of other optimizers that update before the next pass
};

/// Places of the numbers that a look reads beside the gradients.
enum Number : std::uint8_t { kLoss, kClipNorm, kScale, kFoundInf };

/// What a device leaves an update out by.
struct GateWord {
  at::Tensor word =
      {};  ///< there: 1 if the update must be left out, else 0. Undefined: nothing is to be left out
  std::int64_t number = 0;  ///< of this update; what is told later says which it was (StepAnswer::withheld)
};

struct Awaited {
  GateLook look;  ///< its numbers: loss, norm, scale, found_inf
  Update update;
  std::int64_t step = 0;   ///< as the program counts
  std::int64_t round = 0;  ///< Rounds::number
  Losses losses;
  double clip_norm =
      StepFigures::kUnknown;  ///< of the gradients before they were clipped, where it is on the CPU
  bool one_norm = true;       ///< clipping did not find several, of which the look has the largest
  bool norm_bad = false;      ///< known before the look
  std::uint64_t trained = 0;  ///< which weights it updates (ProgramTensors::trained)
  bool joins = false;         ///< another optimizer has written in this step
  std::int64_t withheld = 0;  ///< if it is bad, the device leaves its update out: GateWord::number; else 0
  bool graph_ran = false;     ///< a captured graph was replayed in this step
};

}  // namespace nanquest::attach
