/// How the viewer writes numbers, the same on screen, in text and in CSV.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "probe/trace/names.h"

namespace nanquest::viewer {

/// Four significant digits; "NaN", "+Inf", "-Inf" for what is not finite.
std::string short_number(double value);
/// Four significant digits, or one more than needed to distinguish it from `other`: 5.688581 beside 5.688585.
std::string number_beside(double value, double other);
/// Shortest decimal that reads back to the same double; "nan", "inf", "-inf" for CSV readers.
std::string exact_number(double value);
/// 1048576 -> "1,048,576".
std::string grouped(std::uint64_t value);
/// 1 -> "1 value", 12 -> "12 values"; `plural` defaults to `one` + "s".
std::string counted(std::uint64_t count, const std::string& one, const std::string& plural = "");
/// "[8, 128, 512]".
std::string shape_text(const std::vector<std::int64_t>& shape);
/// "9.3 MB", for sizes of files and tensors (powers of 1000).
std::string bytes_text(std::uint64_t bytes);
/// "1.25 %" of `whole`; "-" for zero, "< 0.01 %" for very small shares.
std::string percent_text(std::uint64_t part, std::uint64_t whole);
/// "2 NaN, 17 +Inf" without the ones that are zero; "" if all are.
std::string bad_text(std::uint64_t nan, std::uint64_t pos_inf, std::uint64_t neg_inf);

}  // namespace nanquest::viewer
