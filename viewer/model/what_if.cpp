#include "viewer/model/what_if.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <optional>
#include <string_view>

#include "viewer/model/numbers.h"

namespace nanquest::viewer {
namespace {

std::string power_text(int scale) {
  return "2^" + std::to_string(scale);
}

/// The exponent of "2^12", "4096", "0.5"; nothing if it is no power of two.
std::optional<int> power_from(std::string_view text) {
  const bool exponent = text.starts_with("2^");
  if (exponent) text.remove_prefix(2);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  int power = 0;
  const bool whole = exponent ? value == std::floor(value) : std::frexp(value, &power) == 0.5;
  if (exponent && std::abs(value) <= kMostFitScale) power = static_cast<int>(value);
  if (exponent && std::abs(value) > kMostFitScale) return std::nullopt;
  if (!exponent) --power;  // frexp's mantissa is a half
  return whole && std::abs(power) <= kMostFitScale ? std::optional(power) : std::nullopt;
}

}  // namespace

Result<WhatIf> what_if_from(const std::string& text) {
  const std::string name = text.substr(0, text.find(':'));
  WhatIf what;
  const auto* const found = std::ranges::find_if(kFitFormats, [&](Format f) { return info(f).name == name; });
  std::string names;
  for (const Format format : kFitFormats) names.append(names.empty() ? "" : ", ").append(info(format).name);
  if (found == std::end(kFitFormats))
    return Error{ErrorCode::usage, "there is no format \"" + name + "\"", "choose one of " + names};
  what.format = *found;
  if (name.size() == text.size()) return what;
  const std::string scale = text.substr(name.size() + 1);
  const std::optional<int> power = power_from(scale);
  if (!power)
    return Error{ErrorCode::usage, "the scale \"" + scale + "\" is no power of two that can be tried",
                 fmt::format("give one from 2^-{} to 2^{}, as in {}:2^12 or {}:4096", kMostFitScale,
                             kMostFitScale, name, name)};
  what.scale = *power;
  return what;
}

std::string what_if_word(const WhatIf& what) {
  return std::string(info(what.format).name) + ":2^" + std::to_string(what.scale);
}

WhatIf scaled(const WhatIf& what, int by) {
  return {what.format, std::clamp(what.scale + by, -kMostFitScale, kMostFitScale)};
}

WhatIf next_format(const WhatIf& what) {
  const auto* const at = std::ranges::find(kFitFormats, what.format);
  const bool last = at + 1 >= std::end(kFitFormats);
  return {last ? kFitFormats[0] : *(at + 1), what.scale};
}

std::string scale_text(int scale) {
  constexpr int readable = 24;  // with all digits
  if (scale == 0) return "1";
  return power_text(scale) +
         (scale > 0 && scale <= readable ? " (" + grouped(std::uint64_t{1} << scale) + ")" : "");
}

std::string what_if_text(const FitCounts& counts, const WhatIf& what, std::uint64_t non_finite) {
  const Fit fit = counts.in(what.format, what.scale);
  const std::string where = std::string(info(what.format).name) + " at " + (what.scale == 0 ? "scale " : "") +
                            scale_text(what.scale) + ": ";
  if (counts.count() == 0) return where + "no value is finite and above or below zero";
  const std::string kind = non_finite == 0 ? "value" : "finite value";
  const std::string already =
      non_finite == 0
          ? ""
          : "; " + grouped(non_finite) + (non_finite == 1 ? " is" : " are") + " not finite already";
  if (fit == Fit{} && counts.count() == 1)
    return where + "the one " + kind + " that is not zero fits" + already;
  if (fit == Fit{})
    return where + "all " + counted(counts.count(), kind) + " that are not zero fit" + already;
  return where +
         fmt::format("{} of {} overflow{}, {} become{} zero, {} subnormal", grouped(fit.overflow),
                     counted(counts.count(), kind), fit.overflow == 1 ? "s" : "", grouped(fit.flushed),
                     fit.flushed == 1 ? "s" : "", grouped(fit.subnormal)) +
         already;
}

std::string harmless_text(const FitCounts& counts, Format format) {
  const auto [lowest, highest] = counts.scales(format);
  if (counts.count() == 0 || lowest > highest) return counts.count() == 0 ? "-" : "none";
  const bool any_low = lowest == -kMostFitScale, any_high = highest == kMostFitScale;
  if (any_low && any_high) return "any";
  if (any_low || any_high)
    return any_low ? "up to " + power_text(highest) : "from " + power_text(lowest) + " on";
  return power_text(lowest) + " to " + power_text(highest);
}

}  // namespace nanquest::viewer
