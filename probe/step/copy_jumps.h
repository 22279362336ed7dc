/// CopyJumps: how far copies into a target network make a run's figures jump.
///
/// A loss that is computed from a copy of the network (a target network) jumps when the program renews the
/// copy. Such a jump is the program's own if earlier copies made jumps of that size. As long as few copies
/// are known, a jump after one is not judged, unless it is far beyond the edge. Copies in nearly every step
/// (an average) explain nothing: the band knows them. No torch; one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace nanquest {

class CopyJumps {
 public:
  /// A copy explains what begins in one of the first kFollows steps judged after it. Copies that follow each
  /// other within kRare steps are not rare.
  static constexpr int kFollows = 2, kRare = 8;
  /// Earlier copies that have to be known, and how far beyond the edge a step may lie before they are: four
  /// times as far as any other step's would have to.
  static constexpr std::size_t kKnown = 3;
  static constexpr double kUnknown = 4;

  /// A step is judged whose band is known, and before which the program had made `copies` in all. `loss`,
  /// `norm`: their distances above the middle (Band::above). `goes_on`: what a copy made has not come back
  /// yet.
  void judged(std::int64_t copies, double loss, double norm, bool goes_on);
  /// Whether a copy was made just before the step that was judged last.
  bool follows() const { return rare_ && since_ < kFollows; }
  /// Whether a copy may bring a run so far out: its own copies have, or few of them are known.
  bool explains(double loss, double norm) const;

 private:
  struct Jump {
    double loss = 0, norm = 0;
  };
  double allowed(double Jump::*figure) const;

  std::array<Jump, 8> jumps_{};  ///< of the last copies; the newest is the one that is being judged
  std::size_t known_ = 0;        ///< copies so far
  std::int64_t copies_ = -1;     ///< as told last; below 0: not yet
  int since_ = kRare;            ///< steps judged since the last copy
  bool rare_ = false;
};

}  // namespace nanquest
