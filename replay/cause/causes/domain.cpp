// DOMAIN: an argument outside the function's domain. Its proof is not written yet.
#include <ATen/ATen.h>

#include "replay/cause/cause.h"
#include "replay/cause/values.h"

namespace nanquest {
namespace {

/// Where `x` lies outside the domain of the op with this plain name.
at::Tensor outside(std::string_view op, const at::Tensor& x) {
  if (op == "log1p") return x < -1;
  if (op == "acosh") return x < 1;
  if (op == "acos" || op == "asin" || op == "atanh") return x.abs() > 1;
  return x < 0;
}

bool resembles(const Case& c, const Subject& function) {
  const auto given = tensors_in({argument(c, c.op_index(), function.argument)});
  return !given.empty() && given[0].is_floating_point() &&
         count_true(outside(function.op, wide(given[0]))) > 0;
}

}  // namespace

NANQUEST_CAUSE(domain) = {
    .label = Label::domain,
    .ops = {{"log", "self"},
            {"log2", "self"},
            {"log10", "self"},
            {"log1p", "self"},
            {"sqrt", "self"},
            {"rsqrt", "self"},
            {"acos", "self"},
            {"asin", "self"},
            {"atanh", "self"},
            {"acosh", "self"},
            {"pow", "self"}},
    .yields_to = {Label::eps_underflow, Label::logspace_inf_grad, Label::mask_overflow},
    .resembles = resembles,
};

}  // namespace nanquest
