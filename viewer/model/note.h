/// Note: what a user wrote about a place of a run.
#pragma once

#include <cstdint>
#include <string>

#include "viewer/model/link.h"

namespace nanquest::viewer {

/// Identifies one of a run's incidents, independent of the others.
struct IncidentName {
  std::int64_t step = -1;  ///< -1: none
  std::int32_t rank = 0;
  int attempt = 1;
  bool operator==(const IncidentName&) const = default;
};

struct Note {
  std::string text;
  IncidentName incident;  ///< that was open
  Link place;             ///< where they were looking

  /// "step 131, op 55": where it leads.
  std::string where() const;
  bool operator==(const Note&) const = default;
};

}  // namespace nanquest::viewer
