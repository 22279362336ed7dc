#include "replay/trace/collective.h"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

#include "probe/numerics/format.h"
#include "probe/tensor/tensor_scan.h"

namespace nanquest::trace {
namespace {

/// Unit roundoff and largest finite value of a floating-point type.
struct Range {
  double roundoff = 0, largest = 0, smallest = 0;
};

Range range_of(at::ScalarType type) {
  const auto dtype = dtype_of(type);
  const auto format = dtype ? format_of(*dtype) : std::nullopt;
  if (!format) throw std::runtime_error("numbers of this type are not added up here");
  const auto& about = info(*format);
  return {std::ldexp(1.0, -about.mantissa_bits - 1), about.max_finite, about.min_subnormal};
}

/// x_0 … x_{n-1} of one item, as rows.
at::Tensor stacked(const std::vector<Given>& given, std::size_t item) {
  std::vector<at::Tensor> rows;
  for (const Given& one : given) {
    if (item >= one.size() || !one[item].defined()) throw std::runtime_error("what a rank gave is not there");
    if (!rows.empty() &&
        (one[item].scalar_type() != rows.front().scalar_type() || one[item].numel() != rows.front().numel()))
      throw std::runtime_error("the ranks gave tensors of different sizes or types");
    rows.push_back(one[item]);
  }
  return at::stack(rows);
}

at::Tensor fold(const at::Tensor& rows, at::Tensor (*with)(const at::Tensor&, const at::Tensor&)) {
  at::Tensor all = rows[0].clone();
  for (std::int64_t i = 1; i < rows.size(0); ++i) all = with(all, rows[i]);
  return all;
}

at::Tensor plus(const at::Tensor& a, const at::Tensor& b) {
  return at::add(a, b);
}
at::Tensor times(const at::Tensor& a, const at::Tensor& b) {
  return at::mul(a, b);
}

/// Values, bounds and elements that may overflow, of one item.
struct Reduced {
  at::Tensor values, bounds, may_overflow;
};

/// A sum, an average or a product of floating-point numbers.
Reduced reduce_floats(Reduction reduction, const at::Tensor& rows) {
  const auto n = static_cast<double>(rows.size(0));
  const at::ScalarType type = rows.scalar_type();
  const Range range = range_of(type);
  const bool product = reduction == Reduction::product;
  Reduced out;
  // One addition has one result. Only if it also divides, the order may matter.
  if (rows.size(0) <= 2 && reduction != Reduction::average) {
    out.values = fold(rows, product ? times : plus);
    return out;
  }
  const at::Tensor wide = rows.to(at::kDouble);
  const at::Tensor sum = fold(wide, product ? times : plus);
  const at::Tensor size = product ? sum.abs() : wide.abs().sum(0);
  // The reference has rounding errors of its own, which count if the numbers are fp64 themselves.
  const double each = range.roundoff + std::numeric_limits<double>::epsilon() / 2;
  const double gamma = (n - 1) * each / (1 - (n - 1) * each);
  out.bounds = size * gamma + n * range.smallest;
  out.values = sum;
  if (reduction == Reduction::average) {
    out.values = sum / n;
    out.bounds = out.bounds / n + out.values.abs() * (2 * range.roundoff) + range.smallest;
  }
  out.may_overflow = at::logical_and(at::isfinite(size), at::gt(size * (1 + gamma), range.largest));
  out.values = out.values.to(type);
  return out;
}

Reduced reduce(Reduction reduction, const at::Tensor& rows) {
  switch (reduction) {
    case Reduction::min:
      return {rows.amin(0), {}, {}};
    case Reduction::max:
      return {rows.amax(0), {}, {}};
    case Reduction::band:
      return {
          fold(rows, [](const at::Tensor& a, const at::Tensor& b) { return at::bitwise_and(a, b); }), {}, {}};
    case Reduction::bor:
      return {
          fold(rows, [](const at::Tensor& a, const at::Tensor& b) { return at::bitwise_or(a, b); }), {}, {}};
    case Reduction::bxor:
      return {
          fold(rows, [](const at::Tensor& a, const at::Tensor& b) { return at::bitwise_xor(a, b); }), {}, {}};
    case Reduction::sum:
    case Reduction::average:
    case Reduction::product:
      break;
    case Reduction::none:
    case Reduction::unknown:
      throw std::runtime_error("the file does not say how it reduces");
  }
  if (rows.is_floating_point()) return reduce_floats(reduction, rows);
  if (rows.is_complex()) {
    if (reduction != Reduction::sum || rows.size(0) > 2)
      throw std::runtime_error("of complex numbers only the sum of two is computed here");
    Reduced parts = reduce_floats(reduction, as_reals(rows).flatten(1));
    parts.values = at::view_as_complex(parts.values.view({-1, 2}));
    return parts;
  }
  if (reduction == Reduction::average) throw std::runtime_error("an average of integers is not checked here");
  return {fold(rows, reduction == Reduction::product ? times : plus), {}, {}};
}

at::Tensor part(const at::Tensor& all, std::size_t place, std::size_t n) {
  if (!all.defined()) return all;
  const auto parts = static_cast<std::int64_t>(n);
  if (all.numel() % parts != 0) throw std::runtime_error("the parts of the ranks are not equal");
  const std::int64_t each = all.numel() / parts;
  return all.narrow(0, static_cast<std::int64_t>(place) * each, each);
}

/// NaN in min and max: backends compare differently, and either operand may win.
at::Tensor any_nan(const std::vector<Given>& given, std::size_t item) {
  const at::Tensor rows = stacked(given, item);
  return rows.is_floating_point() ? at::isnan(rows).any(0) : at::Tensor();
}

/// Same bits, or both NaN.
at::Tensor same(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor x = as_reals(a).flatten(), y = as_reals(b).flatten();
  const std::int64_t bytes = x.element_size();
  const at::ScalarType bits = bytes == 8   ? at::kLong
                              : bytes == 4 ? at::kInt
                              : bytes == 2 ? at::kShort
                                           : at::kChar;
  const at::Tensor equal = at::eq(x.view(bits), y.view(bits));
  return x.is_floating_point() ? at::logical_or(equal, at::logical_and(at::isnan(x), at::isnan(y))) : equal;
}

}  // namespace

Expected collective_result(const CollectiveCall& call, const std::vector<Given>& given, std::size_t place) {
  Expected out;
  for (std::size_t item = 0; item < call.inputs.size(); ++item) {
    Reduced all;
    switch (call.pattern) {
      case Pattern::broadcast: {
        const auto root = static_cast<std::size_t>(call.root);
        if (call.root < 0 || root >= given.size() || item >= given[root].size())
          throw std::runtime_error("what the root gave is not there");
        all.values = given[root][item];
        break;
      }
      case Pattern::gather:
        all.values = stacked(given, item).flatten();
        break;
      case Pattern::reduce:
      case Pattern::reduce_scatter:
        all = reduce(call.reduction, stacked(given, item));
        if (call.reduction == Reduction::min || call.reduction == Reduction::max)
          all.may_overflow = any_nan(given, item);
        break;
    }
    if (call.pattern == Pattern::reduce_scatter)
      for (at::Tensor* tensor : {&all.values, &all.bounds, &all.may_overflow})
        *tensor = part(*tensor, place, given.size());
    out.values.push_back(all.values);
    out.bounds.push_back(all.bounds);
    out.may_overflow.push_back(all.may_overflow);
  }
  return out;
}

Matched hold_against(const Expected& expected, const std::vector<at::Tensor>& recorded) {
  if (expected.values.size() != recorded.size())
    throw std::runtime_error("the results are not as many as computed");
  Matched out;
  bool all_same = true;
  for (std::size_t item = 0; item < recorded.size(); ++item) {
    const at::Tensor want = expected.values[item].contiguous(), got = recorded[item].contiguous();
    if (want.numel() != got.numel() || want.scalar_type() != got.scalar_type())
      throw std::runtime_error("the result has another size or type than what was given");
    at::Tensor fits = same(want, got);
    all_same = all_same && fits.all().item<bool>();
    if (expected.may_overflow[item].defined()) {
      const at::Tensor allowed = expected.may_overflow[item];
      // An overflow on the way gives infinity or NaN; a min or max with a NaN gives anything.
      fits = at::logical_or(fits, expected.bounds[item].defined()
                                      ? at::logical_and(allowed, at::logical_not(at::isfinite(got)))
                                      : allowed);
    }
    if (expected.bounds[item].defined()) {
      const at::Tensor off = at::sub(got.to(at::kDouble), want.to(at::kDouble)).abs();
      // The computed one was rounded to the format as well.
      const at::Tensor bound =
          expected.bounds[item] + want.to(at::kDouble).abs() * range_of(got.scalar_type()).roundoff;
      // Distances from an infinity or NaN are meaningless.
      const at::Tensor near = at::logical_and(at::isfinite(want), at::le(off, bound));
      fits = at::logical_or(fits, near);
      const at::Tensor seen = at::where(near, off, at::zeros_like(off));
      if (seen.numel() > 0) {
        const auto worst = seen.argmax().item<std::int64_t>();
        if (const double distance = seen[worst].item<double>(); distance > out.distance) {
          out.distance = distance;
          out.bound = bound[worst].item<double>();
        }
      }
    }
    const std::int64_t wrong = fits.numel() - fits.sum().item<std::int64_t>();
    if (wrong > 0 && out.first < 0) {
      const auto at_element = at::argmin(fits.to(at::kByte)).item<std::int64_t>();
      out.first = out.elements + at_element;
      const auto value = [&](const at::Tensor& t) {
        return as_reals(t).flatten()[at_element].to(at::kDouble).item<double>();
      };
      out.recorded = value(got);
      out.computed = value(want);
    }
    out.different += wrong;
    out.elements += fits.numel();
  }
  out.match = out.different > 0 ? Match::differs : all_same ? Match::exact : Match::within;
  return out;
}

}  // namespace nanquest::trace
