/// data_trials: is the batch why the step is out of its range, and which samples of it?
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "replay/spike/batch.h"
#include "replay/spike/trials.h"

namespace nanquest {

struct DataResult {
  enum class Verdict : std::uint8_t {
    unknown,
    other_batch_too,  ///< the step is not back in its range with the batch of the step before
    whole_batch,      ///< it is not, and no half of the samples alone is why
    samples,          ///< it is not without `samples`, and is without as many others
  };
  Verdict verdict = Verdict::unknown;
  std::vector<std::int64_t> samples;
  std::int64_t of = 0;               ///< samples in the batch, 0 if unknown
  Figures before, without, control;  ///< with the batch before; without the samples; without others
  std::vector<std::string> not_tested;
};

/// Runs the step on other data. `measure` runs it with the given options; `has_time` ends the search.
DataResult try_data(const StepBatch& batch, const std::function<Figures(const RunOptions&)>& measure,
                    const std::function<bool()>& has_time, SpikeTrials& trials);

}  // namespace nanquest
