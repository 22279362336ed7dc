/// RunBand: is a finite step a spike, and has the loss left its band for good?
///
///     const BandNews news = band.judge({.step = n, .loss = loss, .norm = norm, .rate = rate});
///     if (news.kind == BandNews::spike) …       // the first step of an excursion
///
/// Each figure has its own Band, learned from the steps inside it. An excursion begins with a step whose loss
/// or gradient norm is beyond its band's edge, and ends when kBack steps in a row are inside again. A loss
/// that stays outside has left for good: that is divergence. So is a loss that climbs far above its start
/// while the weights grow, however steadily it climbs.
///
/// The learning rate is known: after it has risen (a warm-up, a restart) only a loss worse than at the run's
/// start is a spike. What is small against the run's start is none. A jump that follows a copy into a target
/// network is judged by what such copies did before (CopyJumps). No torch; one thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

#include "probe/step/band.h"
#include "probe/step/copy_jumps.h"

namespace nanquest {

/// What a good step's gate has measured. NaN: not known.
struct StepFigures {
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  std::int64_t step = 0;
  double loss = kUnknown;
  double norm = kUnknown;     ///< of the gradients
  double rate = kUnknown;     ///< the learning rate
  double weights = kUnknown;  ///< norm of all weights, as last measured
  double moved = kUnknown;    ///< norm of the last measured update, relative to that of the weights
  std::int64_t copies = 0;  ///< copies into weights that no optimizer holds, made by the run before the step
};

struct BandNews {
  enum Kind : std::uint8_t {
    inside,
    spike,     ///< the first step of an excursion
    goes_on,   ///< another step outside, of the same excursion
    diverged,  ///< the loss left its band at step `since` and has not come back; told once
  };
  Kind kind = inside;
  bool loss = false, norm = false;  ///< which of them is outside
  std::int64_t since = 0;           ///< the excursion's first step
  Band::Range usual_loss, usual_norm;
  /// Whether the step is outside its band.
  bool outside() const { return kind != inside; }
};

class RunBand {
 public:
  static constexpr int kBack = 8, kForGood = 64;

  /// Judges a finite step, once.
  BandNews judge(const StepFigures& seen);

 private:
  /// One figure, and what it was like in the first steps.
  struct Figure {
    explicit Figure(double ratio) : band(ratio) {}
    Band band;
    double start = 0, largest = 0;  ///< size at the start; largest value of a step inside the band
    int first = 0;
    double farthest = 0;  ///< in the running excursion
    bool out = false;     ///< was ever outside in it
    double above(double value, bool rate_rose) const;
    void take(double value);
    void came_back();
    /// The excursion was the program's own: it says nothing of later ones.
    void was_its_own();
  };
  /// A loss that climbs without ever leaving its band at once. How many times as large it is means something
  /// only of a loss that is never negative: not of a policy's.
  struct Climb {
    std::array<double, kBack> last{};
    int count = 0;
    double first = 0, low = 0, weights = StepFigures::kUnknown;
    std::int64_t low_at = 0;
    bool negative = false;
    /// Whether the last half of `last` is below the first.
    bool falls() const;
    bool climbs(const StepFigures& seen);
  };

  bool rate_rose(double rate);
  BandNews begin(BandNews news, const StepFigures& seen);
  BandNews go_on(BandNews news, const StepFigures& seen);
  /// Another step of an excursion that a copy made.
  BandNews after_copy(BandNews news, const StepFigures& seen);
  BandNews diverged(BandNews news);

  Figure loss_{1.25}, norm_{2};
  Climb climb_;
  std::array<double, Band::kWindow> rates_{};
  std::size_t rates_known_ = 0;
  CopyJumps jumps_;
  bool excursion_ = false;
  bool quiet_ = false;     ///< a copy made the excursion: nothing is told
  bool left_ = false;      ///< for good
  double left_above_ = 0;  ///< a loss that climbed is back below this; 0: when it is inside its band
  int wary_ = 0;  ///< steps in which only a step well beyond the edge is a spike: one came back lately
  std::int64_t since_ = 0;
  Band::Range usual_loss_, usual_norm_;
  int steps_ = 0, outside_ = 0, outside_in_a_row_ = 0, inside_in_a_row_ = 0;  ///< of the excursion
};

}  // namespace nanquest
