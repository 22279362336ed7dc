/// PNG files from pixels and back.
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

/// The bytes of a PNG file that holds `image`. `internal` on failure.
Result<std::string> png_bytes(const Image& image);

/// Writes `image` to `path`, complete or not at all. `io` on failure.
Status write_png(const std::string& path, const Image& image);

/// The pixels of a PNG file (a background for what it leaves transparent is black). `bad_file` if it is none.
Result<Image> read_png(const std::string& path);

}  // namespace nanquest::viewer
