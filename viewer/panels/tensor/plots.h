/// The two plots of the tensor panel.
#pragma once

#include "viewer/model/tensors.h"
#include "viewer/panels/view.h"

namespace nanquest::viewer {

/// Binary exponents at which a format's values begin, are normal, and end.
struct Band {
  double subnormal = 0, normal = 0, last = 0;
};
/// The range of values that are within a format after multiplication by 2^scale.
Band band_of(Format format, int scale);

/// Count of values per binary exponent (log scale), with the range of each number format as a band above: for
/// the values times 2^scale.
void draw_exponents(const TensorDetail& detail, int scale, float height);
/// |value| of a plane as a heat map, non-finite cells marked, a frame around the cell of the current element.
/// A click selects the element.
void draw_slice(UiState& state, const TensorSlice& slice, float height);

}  // namespace nanquest::viewer
