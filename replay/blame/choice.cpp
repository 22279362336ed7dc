#include "replay/blame/choice.h"

#include <set>
#include <string_view>

#include "probe/trace/op_numbers.h"

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
  return names.count(plain_name(op.name)) > 0;
}

}  // namespace nanquest
