/// Parts of the tensor panel in files of their own. Private to viewer/panels/tensor.
#pragma once

#include "viewer/panels/tensor/view.h"

namespace nanquest::viewer {

/// The formats, and the chosen scale; nothing for tensors without floating-point numbers.
void draw_formats(UiState& state, const TensorDetail& detail);
/// The elements around the current one, as far as they were read.
void draw_elements(UiState& state, TensorPanel& panel);
/// The culprit's inputs and output, element by element, recorded and replayed; and what the file does not
/// hold.
void draw_culprit(UiState& state, TensorPanel& panel);
/// Goes to the next element that is not finite, or the one before; its description, or that there is none,
/// becomes the message.
void step_bad(UiState& state, TensorPanel& panel, Direction direction);

}  // namespace nanquest::viewer
