#include "probe/trace/op_numbers.h"

#include "probe/base/one_of.h"
#include "probe/trace/op_facts.h"

namespace nanquest {

std::string_view plain_name(std::string_view op) {
  for (const std::string_view prefix : {"aten::", "_foreach_"})
    if (op.starts_with(prefix)) op.remove_prefix(prefix.size());
  if (op.size() > 1 && op.ends_with('_')) op.remove_suffix(1);
  return op;
}

bool moves_elements(std::string_view op) {
  return is_one_of(
      plain_name(op),
      {"_to_copy",  "_unsafe_view", "alias",  "cat",   "clone",        "contiguous", "copy",    "detach",
       "expand",    "flip",         "gather", "index", "index_select", "lift_fresh", "permute", "repeat",
       "reshape",   "roll",         "select", "slice", "squeeze",      "stack",      "t",       "to",
       "transpose", "unsqueeze",    "view"});
}

bool makes_numbers(std::string_view op) {
  return returns_uninitialised(op) ||
         is_one_of(plain_name(op),
                   {"arange",  "bernoulli",  "empty",     "fill",      "full",          "full_like",
                    "normal",  "ones",       "ones_like", "rand",      "rand_like",     "randint",
                    "randn",   "randn_like", "random",    "randperm",  "scalar_tensor", "set",
                    "uniform", "zero",       "zeros",     "zeros_like"});
}

}  // namespace nanquest
