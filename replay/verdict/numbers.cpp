#include "replay/verdict/numbers.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <iterator>

namespace nanquest {

std::string count_text(std::int64_t n, const std::string& noun) {
  return std::to_string(n) + " " + noun + (n == 1 ? "" : "s");
}

std::string number_text(double value) {
  if (std::isnan(value)) return "nan";  // its sign means nothing
  char text[32];
  const double size = std::abs(value);
  const bool whole = value == std::floor(value) && size < 1e6;
  std::snprintf(text, sizeof text,
                whole || (size >= 999.5 && size < 1e9) ? "%.0f"
                : size >= 1e9                          ? "%.4e"
                                                       : "%.3g",
                value);
  return text;
}

std::string exact_text(double value) {
  char text[32];
  return {text, std::to_chars(std::begin(text), std::end(text), value).ptr};
}

}  // namespace nanquest
