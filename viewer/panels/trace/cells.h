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
/// Where the chosen op is, the path to the loss, and with `neighbours` which ops made its inputs and which
/// read its outputs.
void draw_op_details(UiState& state, const OpenIncident& incident, bool neighbours);

struct TracePanel;
/// The list of ops, so many pixels high.
void draw_op_table(TracePanel& view, UiState& state, const OpenIncident& incident, float height);
/// Chooses the op before or after on an arrow key.
void follow_arrows(UiState& state, const TracePanel& view);
/// The whole step in one line: phases, values that are not finite, where they were made, the first divergence
/// from fp64, the culprit, and the rows of the list that are in sight. A click goes there.
void draw_step_map(TracePanel& view, UiState& state, const OpenIncident& incident);
/// The producers and consumers of the chosen op on two levels. A click chooses one.
void draw_op_graph(TracePanel& view, UiState& state, const OpenIncident& incident);
/// Pixels that the graph is high.
float graph_height();

/// The op that is selected; none if none is.
inline OpId chosen_op(const UiState& state) {
  return OpId{state.session.selection().op};
}

}  // namespace nanquest::viewer
