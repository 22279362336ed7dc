#include "tests/viewer/golden.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

namespace nanquest::viewer::testing {
namespace {

/// Calls `visit` with the index of every byte of `channel` in the block at x0, y0; returns how many.
template <class Visit>
int over_block(const Image& image, int x0, int y0, int channel, Visit visit) {
  const int x1 = std::min(x0 + kBlock, image.width), y1 = std::min(y0 + kBlock, image.height);
  for (int y = y0; y < y1; ++y)
    for (int x = x0; x < x1; ++x) visit(static_cast<std::size_t>(3 * (y * image.width + x) + channel));
  return (x1 - x0) * (y1 - y0);
}

bool block_differs(const Image& a, const Image& b, int x, int y) {
  for (int channel = 0; channel < 3; ++channel) {
    int sum = 0;
    const int pixels = over_block(a, x, y, channel, [&](std::size_t i) { sum += a.rgb[i] - b.rgb[i]; });
    if (std::abs(sum) > kTolerance * pixels) return true;
  }
  return false;
}

/// Grey of a third of the brightness, against which red is visible.
Image dim(Image image) {
  for (auto p = image.rgb.begin(); p != image.rgb.end(); p += 3)
    p[0] = p[1] = p[2] = static_cast<std::uint8_t>((p[0] + p[1] + p[2]) / 9);
  return image;
}

/// Writes it and returns its path, or what kept it from being written.
std::string keep(const std::string& path, const Image& image) {
  const Status written = write_png(path, image);
  return written ? path : written.error().text();
}

}  // namespace

double differing(const Image& a, const Image& b, Image* shown) {
  if (shown != nullptr) *shown = dim(b);
  if (a.width != b.width || a.height != b.height || a.rgb.empty()) return 1;
  int blocks = 0, different = 0;
  for (int y = 0; y < a.height; y += kBlock)
    for (int x = 0; x < a.width; x += kBlock, ++blocks) {
      if (!block_differs(a, b, x, y)) continue;
      ++different;
      if (shown != nullptr) over_block(*shown, x, y, 0, [&](std::size_t i) { shown->rgb[i] = 255; });
    }
  return static_cast<double>(different) / blocks;
}

Image halved(const Image& image) {
  Image half{image.width / 2, image.height / 2, {}};
  half.rgb.reserve(static_cast<std::size_t>(3 * half.width * half.height));
  const auto row = static_cast<std::size_t>(3 * image.width);
  for (int y = 0; y < half.height; ++y)
    for (int x = 0; x < half.width; ++x)
      for (int channel = 0; channel < 3; ++channel) {
        const std::size_t at =
            static_cast<std::size_t>(2 * y) * row + static_cast<std::size_t>(6 * x + channel);
        const int sum = image.rgb[at] + image.rgb[at + 3] + image.rgb[at + row] + image.rgb[at + row + 3];
        half.rgb.push_back(static_cast<std::uint8_t>((sum + 2) / 4));
      }
  return half;
}

bool renewing() {
  const char* asked = std::getenv("NANQUEST_UPDATE_GOLDENS");
  return asked != nullptr && std::string(asked) == "1";
}

::testing::AssertionResult is_golden(const Image& picture, const std::string& golden,
                                     const std::string& written, bool renew) {
  const Result<Image> wanted = read_png(golden);
  Image shown;
  const double share = wanted ? differing(*wanted, picture, &shown) : 1;
  if (renew ? share == 0 && wanted->rgb == picture.rgb : share <= kShare)
    return ::testing::AssertionSuccess();
  if (renew) {
    std::printf("renewed: %s\n", keep(golden, picture).c_str());
    return ::testing::AssertionSuccess();
  }
  const std::string mine = written + "/" + std::filesystem::path(golden).stem().string();
  std::error_code ec;
  std::filesystem::create_directories(written, ec);
  ::testing::AssertionResult failed = ::testing::AssertionFailure();
  if (wanted)
    failed << std::lround(share * 1e5) << " of 100,000 blocks differ, " << std::lround(kShare * 1e5)
           << " may (sizes: golden " << wanted->width << "x" << wanted->height << ", picture "
           << picture.width << "x" << picture.height
           << ")\n  difference: " << keep(mine + ".difference.png", shown);
  else
    failed << wanted.error().text();
  return failed
         << "\n  picture:    " << keep(mine + ".png", picture) << "\n  golden:     " << golden
         << "\nLook at them. If the picture is right, renew the golden: NANQUEST_UPDATE_GOLDENS=1 ctest "
            "--test-dir build -R GoldenPicture";
}

}  // namespace nanquest::viewer::testing
