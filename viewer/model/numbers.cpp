#include "viewer/model/numbers.h"

#include <fmt/format.h>

#include <cmath>

namespace nanquest::viewer {

std::string short_number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{:.4g}", value);
}

std::string number_beside(double value, double other) {
  if (!std::isfinite(value) || !std::isfinite(other) || value == other) return short_number(value);
  int digits = 4;
  while (digits < 17 && fmt::format("{:.{}g}", value, digits) == fmt::format("{:.{}g}", other, digits))
    ++digits;
  return fmt::format("{:.{}g}", value, digits == 4 || digits == 17 ? digits : digits + 1);
}

std::string exact_number(double value) {
  return std::isnan(value) ? "nan" : fmt::format("{}", value);  // a NaN's sign says nothing
}

std::string grouped(std::uint64_t value) {
  return fmt::format("{}", fmt::group_digits(value));
}

std::string counted(std::uint64_t count, const std::string& one, const std::string& plural) {
  return grouped(count) + " " + (count == 1 ? one : plural.empty() ? one + "s" : plural);
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::string bytes_text(std::uint64_t bytes) {
  if (bytes < 1000) return fmt::format("{} B", bytes);
  const char* unit = "kMGTPE";
  double value = static_cast<double>(bytes) / 1000;
  for (; value >= 1000; ++unit) value /= 1000;
  return fmt::format("{:.{}f} {}B", value, value < 10 ? 1 : 0, *unit);
}

std::string percent_text(std::uint64_t part, std::uint64_t whole) {
  if (part == 0 || whole == 0) return "-";
  const double percent = 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  return percent < 0.01 ? "< 0.01 %" : fmt::format("{:.3g} %", percent);
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
