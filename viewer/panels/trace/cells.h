/// What the trace panel draws besides its list: the cells that are no plain text, and the lines below the
/// list. Private to viewer/panels/trace.
#pragma once

#include "viewer/panels/view.h"

namespace nanquest::viewer {

/// The mark of an op, as a shape.
void draw_op_mark(OpMark mark);
/// Headroom: a bar that is empty at 0 bits, and the number.
void draw_room(const ValueRange& range);
/// How many of the values are not finite; nothing if none is.
void draw_bad(const ValueRange& range);
/// Three columns of the table: what the op wrote in fp32 and in fp64, and how far it was from the latter as
/// recorded.
void draw_replayed(const OpenIncident& incident, OpId op);
/// Where the chosen op is, which ops made its inputs, which read its outputs, the path to the loss.
void draw_op_details(UiState& state, const OpenIncident& incident);

/// The op that is selected; none if none is.
inline OpId chosen_op(const UiState& state) {
  return OpId{state.session.selection().op};
}

}  // namespace nanquest::viewer
