#include "viewer/model/statistic.h"

namespace nanquest::viewer {

const char* statistic_title(Statistic s) {
  constexpr const char* titles[kStatistics] = {"Gradient norm", "Weight norm", "Update ratio",
                                               "Gradient max |x|", "Weight max |x|"};
  return titles[static_cast<int>(s)];
}

const char* statistic_table(Statistic s) {
  constexpr const char* names[kStatistics] = {"grad_norm", "weight_norm", "update_ratio", "grad_amax",
                                              "weight_amax"};
  return names[static_cast<int>(s)];
}

std::optional<Statistic> statistic_from_name(std::string_view table) {
  for (int i = 0; i < kStatistics; ++i)
    if (table == statistic_table(static_cast<Statistic>(i))) return static_cast<Statistic>(i);
  return std::nullopt;
}

}  // namespace nanquest::viewer
