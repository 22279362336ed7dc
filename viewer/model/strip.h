/// Strip: the line above all panels. What happened, where, with which confidence; where it began and where it
/// broke.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "replay/verdict/words.h"
#include "viewer/model/link.h"
#include "viewer/model/session.h"

namespace nanquest::viewer {

/// Where it went wrong in the open incident.
struct Breaks {
  std::optional<Link> began;  ///< the first op that left less than one bit of room, up to where it broke
  std::optional<Link> broke;  ///< the op that made the first bad value
};

/// Cheap enough for every frame.
Breaks breaks_of(const Session& session);

struct Strip {
  std::optional<Label> cause;  ///< nothing before a replay
  std::string says;         ///< "FP16_OVERFLOW", "not replayed yet", "No incident: steps 0 to 99 were finite"
  std::vector<Span> facts;  ///< step, op, module, confidence
  Breaks breaks;
  bool over = false;  ///< the run is over: nothing new will come
  std::string age;    ///< how long ago something was written, in whole units; "" if unknown
};

/// The strip of what is open.
Strip strip_of(const Session& session);

}  // namespace nanquest::viewer
