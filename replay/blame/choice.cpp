#include "replay/blame/choice.h"

#include <set>
#include <string_view>

namespace nanquest {

bool chooses_by_value(const OpRow& op) {
  static const std::set<std::string_view> names = {"max",       "amax",       "maximum",
                                                   "fmax",      "min",        "amin",
                                                   "minimum",   "fmin",       "clamp",
                                                   "clamp_min", "clamp_max",  "clip",
                                                   "relu",      "relu6",      "hardtanh",
                                                   "threshold", "nan_to_num", "topk",
                                                   "sort",      "median",     "nanmedian",
                                                   "kthvalue",  "mode",       "nansum",
                                                   "nanmean",   "aminmax",    "max_pool2d_with_indices"};
  std::string_view name = op.name;
  for (const std::string_view prefix : {"aten::", "_foreach_"})
    if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  if (name.ends_with('_')) name.remove_suffix(1);
  return names.count(name) > 0;
}

}  // namespace nanquest
