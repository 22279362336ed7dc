#include "replay/counterfactual/numbers.h"

#include <ATen/ATen.h>

#include <cmath>

#include "replay/case/values.h"

namespace nanquest {
namespace {

bool same(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

bool is_wrapped(const at::Tensor& t) {
  return t.unsafeGetTensorImpl()->is_wrapped_number();
}

}  // namespace

bool is_number(const c10::IValue& value, double number, NumberAs as) {
  if (value.isDouble()) return same(value.toDouble(), number);
  if (value.isScalar())
    return as != NumberAs::real && !value.toScalar().isComplex() && same(value.toScalar().toDouble(), number);
  if (!value.isTensor() || !value.toTensor().defined()) return false;
  const at::Tensor& t = value.toTensor();
  if (t.numel() != 1 || t.is_complex()) return false;
  const bool written =
      t.dim() == 0 && (t.scalar_type() == at::kDouble || (as != NumberAs::real && is_wrapped(t)));
  return (written || as == NumberAs::one_element) && same(wide(t).item<double>(), number);
}

c10::IValue with_number(const c10::IValue& value, double number) {
  if (value.isTensor() && value.toTensor().defined() && value.toTensor().numel() == 1) {
    const at::Tensor& old = value.toTensor();
    const bool whole = !old.is_floating_point() && !old.is_complex();
    at::Tensor other = at::full_like(old, number, whole ? old.options().dtype(at::kDouble) : old.options());
    if (is_wrapped(old)) other.unsafeGetTensorImpl()->set_wrapped_number(true);
    return other;
  }
  if (value.isScalar() || value.isNone()) return number;
  return value;
}

}  // namespace nanquest
