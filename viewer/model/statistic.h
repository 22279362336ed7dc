/// Statistic: which per-layer values are recorded for each step.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace nanquest::viewer {

/// What the norms panel can show, in the order of its buttons.
enum class Statistic : std::uint8_t { gradient, weight, update_ratio, gradient_amax, weight_amax };
inline constexpr int kStatistics = 5;

/// "Gradient norm", … for people.
const char* statistic_title(Statistic s);
/// "grad_norm", …: the table's name in the files.
const char* statistic_table(Statistic s);
/// The one of that table; nothing for any other name.
std::optional<Statistic> statistic_from_name(std::string_view table);

}  // namespace nanquest::viewer
