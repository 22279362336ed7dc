/// Pictures compared with those that a person has looked at (tests/golden/pictures).
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "viewer/app/png.h"

namespace nanquest::viewer::testing {

/// A picture is cut into blocks of so many pixels a side, and their mean colours are compared: rasterisers
/// that put an edge's pixels otherwise move a mean little, a word or a cell elsewhere moves it a lot.
inline constexpr int kBlock = 4;
/// A block differs if its means are further apart than this, in any of red, green and blue (0 … 255).
inline constexpr int kTolerance = 24;
/// The share of all blocks that may differ: about one mark beside a line of text.
inline constexpr double kShare = 0.0002;

/// Part of the blocks that differ, 0 … 1; 1 for pictures of different sizes. `shown`, if given, becomes `b`
/// in dim grey with these blocks in red.
double differing(const Image& a, const Image& b, Image* shown = nullptr);

/// Half as wide and high: each pixel the mean of four. A golden of a large picture is kept so.
Image halved(const Image& image);

/// NANQUEST_UPDATE_GOLDENS=1
bool renewing();

/// True if `picture` is what the PNG file `golden` holds. If not, the picture and the difference are written
/// into the folder `written`, and the message says where, and how to renew the golden; `renew`: the golden is
/// replaced instead, and already if a single pixel differs.
::testing::AssertionResult is_golden(const Image& picture, const std::string& golden,
                                     const std::string& written, bool renew = renewing());

}  // namespace nanquest::viewer::testing
