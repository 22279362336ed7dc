/// Infinities that an op made on a device, in a watched step that did not wait for it: whether they are an
/// overflow of the format, and whether later ops hid it, could not be asked, as nobody kept what the op read.
/// Steps repeat, so the next watched step asks: at these places it waits for the device, and looks as a CPU's
/// step does at every op (hidden_overflow.h).
#pragma once

#include <cstdint>
#include <vector>

#include "probe/record/step.h"

namespace nanquest::record {

/// Not thread-safe: the recorder locks.
class OpenOverflows {
 public:
  /// `op` made infinities of finite inputs on a device, and nobody could ask more of it.
  void add(const OpRecord& op);
  /// A watched step begins, which will ask.
  void begin_watched_step();
  /// Whether this op is to be waited for.
  bool asks(const OpRecord& op) const;
  /// The next step should be watched: something is open that was not asked often enough.
  bool any() const;

 private:
  struct Place {
    const OpTraits* op;
    const ModuleName* module;
    Phase phase;
    int asked;  ///< times
  };
  const Place* find(const OpRecord& op) const;
  std::vector<Place> places_;
};

}  // namespace nanquest::record
