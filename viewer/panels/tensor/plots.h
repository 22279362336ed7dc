/// The two plots of the tensor panel.
#pragma once

#include "viewer/model/tensors.h"
#include "viewer/panels/view.h"

namespace nanquest::viewer {

/// Count of values per binary exponent (log scale), with the range of each number format as a band above.
void draw_exponents(const TensorDetail& detail, float height);
/// |value| of a plane as a heat map, non-finite cells marked. A click selects the element.
void draw_slice(UiState& state, const TensorSlice& slice, float height);

}  // namespace nanquest::viewer
