/// Twins: the last two healthy steps, for comparison with a bad one (twin.h). Two, as the file of a step may be
/// written when the step after it is already known to be finite.
#pragma once

#include <cstdint>
#include <vector>

#include "probe/record/twin.h"

namespace nanquest::record {

class Twins {
 public:
  /// The step is finite so far: keeps what it has read from outside, in place of the older of the two.
  /// `number` is the program's. At most `kTwinBytes` are held for each. Where there is no memory there is no
  /// twin.
  void keep(Step& step, std::int64_t number, const TwinNames& names);
  /// The step with this number (Step::number) was not healthy after all.
  void not_healthy(std::int64_t number);
  /// Those that came before the step with this number, latest first.
  std::vector<const TwinBatch*> before(std::int64_t number) const;
  /// Another step is about to be recorded into `step`.
  void take_records(Step& step);
  std::size_t memory() const;

 private:
  TwinBatch twins_[2];
  int last_ = 0;
};

}  // namespace nanquest::record
