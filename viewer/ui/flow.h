/// Running text with links in it.
#pragma once

#include <vector>

#include "viewer/model/link.h"

namespace nanquest::viewer {

/// Draws the spans as one text, wrapped at the right edge of the available room; lines break at spaces and at
/// line breaks of the text. Returns the link that was clicked in this frame, or null.
const Link* flowing_text(const std::vector<Span>& spans);

}  // namespace nanquest::viewer
