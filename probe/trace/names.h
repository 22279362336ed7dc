/// names: how recorder, replay and viewer call phases, origins, values and formats.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "probe/snapshot/model.h"

namespace nanquest {

/// "input", "forward", "backward", "optimizer".
std::string_view phase_name(Phase phase);

/// The word of a verdict for where a bad value came from: "input" (also for what has no name), "parameter",
/// "buffer", "optimizer_state", "gradient", "loss_scale"; "op" for what the step computed.
std::string_view origin_name(SlotOrigin origin);

/// Non-finite values, counted.
struct BadCounts {
  std::uint64_t nan = 0, pos_inf = 0, neg_inf = 0;
  std::uint64_t total() const { return nan + pos_inf + neg_inf; }
  BadCounts& operator+=(const StatsRow& stats);
};

/// The word of a verdict for them: "nan", "+inf", "-inf", "mixed" for several kinds, "silent" for none.
std::string_view value_name(const BadCounts& counts);

/// Such a word as people read it: "NaN", "+Inf", "-Inf", "non-finite values", "silently destroyed values";
/// `one` asks for the singular.
std::string value_words(std::string_view value, bool one = false);

/// The layer that a parameter belongs to, as columns of the history are named: "blocks.3.fc" of
/// "blocks.3.fc.bias".
std::string_view layer_of(std::string_view parameter);

/// The short name of a format that people use: "fp16", "bf16", "fp32", "i64", "bool", …
std::string dtype_short(DType dtype);

}  // namespace nanquest
