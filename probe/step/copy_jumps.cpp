#include "probe/step/copy_jumps.h"

#include <algorithm>

#include "probe/step/band.h"

namespace nanquest {

void CopyJumps::judged(std::int64_t copies, double loss, double norm, bool goes_on) {
  if (copies_ < 0) copies_ = copies;
  if (copies != copies_) {
    copies_ = copies;
    rare_ = since_ >= kRare;
    since_ = 0;
    if (rare_) jumps_[known_++ % jumps_.size()] = {};
  } else {
    since_ = std::min(since_ + 1, kRare);
  }
  if (known_ == 0 || (!follows() && !goes_on)) return;
  Jump& jump = jumps_[(known_ - 1) % jumps_.size()];
  jump.loss = std::max(jump.loss, loss);
  jump.norm = std::max(jump.norm, norm);
}

double CopyJumps::allowed(double Jump::*figure) const {
  if (known_ <= kKnown) return kUnknown;
  double largest = 0;
  for (std::size_t i = 1; i < std::min(known_, jumps_.size()); ++i)
    largest = std::max(largest, jumps_[(known_ - 1 - i) % jumps_.size()].*figure);
  return std::max(1.0, Band::kTail * largest);
}

bool CopyJumps::explains(double loss, double norm) const {
  return loss <= allowed(&Jump::loss) && norm <= allowed(&Jump::norm);
}

}  // namespace nanquest
