#include "viewer/model/numbers.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace nanquest::viewer {

std::string short_number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

std::string exact_number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::array<char, 40> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value);
  return std::string(text.data(), end.ptr);
}

std::string grouped(std::uint64_t value) {
  const std::string digits = std::to_string(value);
  std::string out;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out;
}

std::string counted(std::uint64_t count, const std::string& one, const std::string& plural) {
  return grouped(count) + " " + (count == 1 ? one : plural.empty() ? one + "s" : plural);
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

std::string bytes_text(std::uint64_t bytes) {
  if (bytes < 1000) return std::to_string(bytes) + " B";
  const char* const units[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
  double value = static_cast<double>(bytes) / 1000;
  int unit = 0;
  for (; value >= 1000 && unit < 5; ++unit) value /= 1000;
  char text[32];
  std::snprintf(text, sizeof text, value < 10 ? "%.1f %s" : "%.0f %s", value, units[unit]);
  return text;
}

std::string bad_text(std::uint64_t nan, std::uint64_t pos_inf, std::uint64_t neg_inf) {
  std::string text;
  const auto add = [&](std::uint64_t count, const char* name) {
    if (count) text += (text.empty() ? "" : ", ") + grouped(count) + " " + name;
  };
  add(nan, "NaN");
  add(pos_inf, "+Inf");
  add(neg_inf, "-Inf");
  return text;
}

}  // namespace nanquest::viewer
