/// StepMap: a whole step in one line: where values went bad, where fp64 parts from the recording, and which
/// op is to blame.
#pragma once

#include <cstdint>
#include <vector>

#include "viewer/model/incident.h"

namespace nanquest::viewer {

/// What is marked on the map; of marks on one spot the last one is drawn on top.
enum class MapMark : std::uint8_t { intended, inf_born, nan_born, divergence, culprit };

struct StepMap {
  struct Stretch {
    Phase phase = Phase::forward;
    OpId first, last;
  };
  struct Marked {
    OpId op;
    MapMark mark = MapMark::culprit;
    bool operator==(const Marked&) const = default;
  };

  std::size_t ops = 0;
  std::vector<Stretch> phases;  ///< in order; together they hold every op
  std::vector<OpId> bad;        ///< ops that wrote values that are not finite, in order
  std::vector<Marked> marks;    ///< by kind, then in order; an op can have several

  /// Where an op stands, 0 … 1.
  double place_of(OpId op) const;
  /// The op at a place, 0 … 1; none if there are no ops.
  OpId op_at(double place) const;
  /// What a click there means: the nearest mark within `reach`, of those equally near the last kind;
  /// otherwise the op.
  OpId target_at(double place, double reach) const;
  /// Which of `count` equal parts of the step hold an op of `bad`.
  std::vector<char> bad_parts(std::size_t count) const;
};

/// The map of an incident: one pass over its ops.
StepMap step_map(const OpenIncident& incident);

/// "NaN", "Inf", or "NaN, Inf" for an op that made such values out of finite ones, on purpose or not; "" for
/// others.
const char* born_words(const OpenIncident& incident, OpId op);
/// "3 ops made them of finite values: 12 aten::exp (Inf), 30 aten::sub (NaN), 31 aten::log (NaN)"; at most
/// `most` are named; intended infinities are not among them. "" if none did.
std::string born_text(const OpenIncident& incident, const StepMap& map, std::size_t most = 12);

}  // namespace nanquest::viewer
