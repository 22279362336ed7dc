/// names: the words of recorder, replay and viewer for phases, origins, values and formats.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "probe/snapshot/model.h"

namespace nanquest {

/// "input", "forward", "backward", "optimizer".
std::string_view phase_name(Phase phase);

/// The verdict's word for the origin of a bad value: "input" (also for values without a name), "parameter",
/// "buffer", "optimizer_state", "gradient", "loss_scale"; "op" for results of the step.
std::string_view origin_name(SlotOrigin origin);

/// Counts of non-finite values.
struct BadCounts {
  std::uint64_t nan = 0, pos_inf = 0, neg_inf = 0;
  std::uint64_t total() const { return nan + pos_inf + neg_inf; }
  BadCounts& operator+=(const StatsRow& stats);
};

/// The verdict's word for them: "nan", "+inf", "-inf", "mixed" for several kinds, "silent" for none.
std::string_view value_name(const BadCounts& counts);

/// That word as text for people: "NaN", "+Inf", "-Inf", "non-finite values", "silently destroyed values";
/// `one` selects the singular.
std::string value_words(std::string_view value, bool one = false);

/// The layer of a parameter, as columns of the history are named: "blocks.3.fc" for "blocks.3.fc.bias".
std::string_view layer_of(std::string_view parameter);

/// The usual short name of a format: "fp16", "bf16", "fp32", "i64", "bool", …
std::string dtype_short(DType dtype);

}  // namespace nanquest
