/// RunBands: a band for each set of weights that is trained.
///
/// What is usual for one model and optimizer says nothing of another: a model that is replaced in mid-run, a
/// second training in the same process, a generator and its critic. A set that has not been trained lately is
/// forgotten. No torch; one thread.
#pragma once

#include <cstdint>
#include <list>

#include "probe/step/run_band.h"

namespace nanquest {

class RunBands {
 public:
  static constexpr std::size_t kMost = 8;

  /// Judges a finite step, once, by the band of what it `trained`: a number of the caller's, one for each set
  /// of weights and optimizer.
  BandNews judge(std::uint64_t trained, const StepFigures& seen);

 private:
  struct Entry {
    std::uint64_t trained = 0;
    RunBand band;
  };
  std::list<Entry> bands_;  ///< the last used first
};

}  // namespace nanquest
