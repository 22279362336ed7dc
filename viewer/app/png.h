/// A PNG file from pixels.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "probe/base/result.h"

namespace nanquest::viewer {

/// Pixels, 3 bytes each (red, green, blue), rows from top to bottom.
struct Image {
  int width = 0, height = 0;
  std::vector<std::uint8_t> rgb;
};

/// Writes `image` to `path`: under a temporary name first, so that a failure leaves nothing half-written.
/// `io` on failure.
Status write_png(const std::string& path, const Image& image);

}  // namespace nanquest::viewer
