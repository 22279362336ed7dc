/// UpdateRisk: which updates get something that earlier ones did not get.
///
/// Recording an update takes time, so most are not recorded. But one that does damage although loss and
/// gradients are finite has nearly always been given something new: a gradient of zeros, one far larger than
/// any before, another setting, moments from a checkpoint. To see that costs nothing, as the gate has
/// measured the gradients.
///
///     if (…) risk.changed();
///     if (risk.judge(gate)) … record this update …
///
/// What a program does again and again is no news, and in the long run at most one update in 64 is.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "probe/step/gate.h"

namespace nanquest {

class UpdateRisk {
 public:
  /// Something other than an update has changed a setting or a moment of the optimizer since its last update.
  void changed() { changed_ = true; }
  /// At the gate of a good step, when `gate` has measured the gradients: whether the coming update gets
  /// something new.
  bool judge(const GradientGate& gate);

  /// Whether that is news of the coming update, whatever its gradients are.
  bool news() const { return changed_ && !changed_before_; }
  /// The update is made without being judged.
  void passed() { changed_before_ = std::exchange(changed_, false); }

 private:
  struct Seen {
    double largest = 0;     ///< of all gradients of this parameter
    bool known = false;     ///< it had a gradient before
    bool zeros = false;     ///< the last one held zeros only
    std::uint8_t news = 0;  ///< how often it was news
  };
  static constexpr std::int64_t kAtOnce = 16, kSteps = 64;

  std::vector<Seen> seen_;
  bool changed_ = false, changed_before_ = false;
  std::int64_t steps_ = 0, left_ = kAtOnce;
};

}  // namespace nanquest
