/// numbers: numbers as sentences of a verdict write them.
#pragma once

#include <cstdint>
#include <string>

namespace nanquest {

/// "1 element", "3 elements".
std::string count_text(std::int64_t n, const std::string& noun);
/// So that two numbers can be compared by eye: 65712.4 -> "65712" (held against 65504), -1000.3 -> "-1000",
/// 0.12345 -> "0.123", 3.5e38 -> "3.5000e+38" (held against "3.4028e+38").
std::string number_text(double value);
/// For a program: the shortest text that reads back as the same double, "1e-05".
std::string exact_text(double value);

}  // namespace nanquest
