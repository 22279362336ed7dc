#include "replay/case/derivative.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "replay/case/values.h"
#include "replay/lab/call_again.h"

namespace nanquest {
namespace {

/// Steps away from the point; the last one is the nearest.
struct Ladder {
  std::array<double, 3> steps;
  bool zeros;         ///< for a zero: the step itself; for other numbers: relative to the number
  double growth;      ///< a slope that grows by this factor from step to step is unbounded
  double resolution;  ///< differences below this share of the value are rounding
};
constexpr Ladder kLadders[] = {{{1e-60, 1e-80, 1e-100}, true, 1.05, 0}, {{1e-3, 1e-5, 1e-7}, false, 2, 1e-9}};

/// The direction, one number per element; `way` and `way ^ 1` are opposite.
at::Tensor direction(const at::Tensor& t, int way) {
  const double sign = way % 2 ? -1 : 1;
  if (way < 2) return at::full(t.sizes(), sign, at::kDouble);
  const at::Tensor wave = at::arange(1, t.numel() + 1, at::kDouble).mul(12.9898).cos().view(t.sizes());
  return at::where(wave >= 0, wave * 0.4 + 0.6, wave * 0.4 - 0.6) * sign;
}

class Probe {
 public:
  Probe(const OpRow& op, const std::vector<c10::IValue>& arguments)
      : call_(CallAgain(op, arguments).raised_to(at::kDouble)), here_(told_by(call_.in(at::kDouble))) {}

  std::vector<Slopes> slopes() {
    std::vector<Slopes> found(here_.size());
    if (here_.empty()) return found;  // an op that can't be examined: nothing may be called on its arguments
    for (std::size_t k = 0; k < here_.size(); ++k)
      if (usable(here_[k])) found[k].singular = at::zeros(here_[k].sizes(), at::kBool);
    for (const Ladder& ladder : kLadders)
      for (int way = 0; way < 4; way += 2) look(ladder, way, found);
    return found;
  }

 private:
  using Outputs = std::vector<at::Tensor>;
  static bool usable(const at::Tensor& t) { return t.defined() && t.scalar_type() == at::kDouble; }

  Outputs away(const Ladder& ladder, double step, int way) const {
    return told_by(call_.in(at::kDouble, [&](const at::Tensor& t) -> at::Tensor {
      if (!can_be_moved(t)) return {};
      const at::Tensor zero = t == 0;
      const at::Tensor moved =
          t + direction(t, way) * (ladder.zeros ? at::full({}, step, at::kDouble) : t.abs() * step);
      return at::where(ladder.zeros ? zero : at::logical_not(zero), moved, t);
    }));
  }

  void look(const Ladder& ladder, int way, std::vector<Slopes>& found) const {
    std::array<std::array<Outputs, 3>, 2> sides;
    for (int side = 0; side < 2; ++side)
      for (std::size_t i = 0; i < 3; ++i) {
        sides[side][i] = away(ladder, ladder.steps[i], way + side);
        if (sides[side][i].size() != here_.size()) return;
      }
    for (std::size_t k = 0; k < here_.size(); ++k) {
      if (!found[k].singular.defined()) continue;
      const at::Tensor& value = here_[k];
      const auto difference = [&](int side, std::size_t i) {
        const at::Tensor d = sides[side][i][k] - value;
        const at::Tensor known = at::logical_and(at::isfinite(d), d.abs() > value.abs() * ladder.resolution);
        return at::where(known, d, at::zeros({}, d.options()));
      };
      for (int side = 0; side < 2; ++side) {
        std::array<at::Tensor, 3> slope;
        for (std::size_t i = 0; i < 3; ++i) slope[i] = difference(side, i).abs() / ladder.steps[i];
        const at::Tensor all = at::logical_and(slope[0] > 0, at::logical_and(slope[1] > 0, slope[2] > 0));
        const at::Tensor grows =
            at::logical_and(slope[1] > slope[0] * ladder.growth, slope[2] > slope[1] * ladder.growth);
        add(at::logical_and(all, grows), slope[0], slope[2], ladder, found[k]);
      }
      const at::Tensor right = difference(0, 2) / ladder.steps[2], left = -difference(1, 2) / ladder.steps[2];
      const at::Tensor kink = (right - left).abs() > (right.abs() + left.abs()) * 0.1;
      const at::Tensor both = at::logical_and(right != 0, left != 0);
      add(at::logical_and(both, kink), left.abs(), right.abs(), ladder, found[k]);
    }
  }

  void add(at::Tensor mask, const at::Tensor& far, const at::Tensor& near, const Ladder& ladder,
           Slopes& s) const {
    mask = at::logical_and(mask, at::logical_not(s.singular));
    if (count_true(mask) == 0) return;
    if (s.near == 0) {
      s.far = far.masked_select(mask).max().item<double>();
      s.near = near.masked_select(mask).max().item<double>();
      s.distance_far = ladder.steps[0], s.distance_near = ladder.steps[2];
    }
    s.singular = at::logical_or(s.singular, mask);
  }

  CallAgain call_;
  Outputs here_;
};

at::Tensor unsqueezed(at::Tensor t, const std::vector<std::int64_t>& dims) {
  for (const std::int64_t d : dims) {
    if (d > t.dim()) return {};
    t = t.unsqueeze(d);
  }
  return t;
}

bool covers_as_is(const at::Tensor& whole, const at::Tensor& part) {
  try {
    const auto same = at::broadcast_tensors({whole, part});
    return count_true(at::logical_and(same[1], at::logical_not(same[0]))) == 0;
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace

std::vector<Slopes> slopes_of(const OpRow& op, const std::vector<c10::IValue>& arguments) {
  try {
    const at::NoGradGuard no_grad;
    return Probe(op, arguments).slopes();
  } catch (const std::exception&) {  // a kernel that wants other arguments in fp64
    return {};
  }
}

bool covers(const at::Tensor& whole, const at::Tensor& part, const std::vector<std::int64_t>& reduced) {
  if (!whole.defined() || !part.defined()) return false;
  if (!reduced.empty() && whole.dim() + static_cast<std::int64_t>(reduced.size()) == part.dim()) {
    const at::Tensor kept = unsqueezed(whole, reduced);
    return kept.defined() && covers_as_is(kept, part);
  }
  if (whole.numel() == part.numel() && whole.sizes() != part.sizes())
    return covers_as_is(whole.reshape({-1}), part.reshape({-1}));
  return covers_as_is(whole, part);
}

std::vector<std::int64_t> reduced_dimensions(const Case& c, std::int32_t op) {
  const c10::IValue keep = argument(c, op, "keepdim"), dim = argument(c, op, "dim");
  const at::Tensor self = tensor_of(argument(c, op, "self"));
  if ((keep.isBool() && keep.toBool()) || !self.defined()) return {};
  std::vector<std::int64_t> dims;
  if (dim.isInt()) dims = {dim.toInt()};
  if (dim.isIntList()) dims = dim.toIntVector();
  for (std::int64_t& d : dims)
    if (d < 0) d += self.dim();
  std::sort(dims.begin(), dims.end());
  return dims;
}

at::Tensor spread(const at::Tensor& mask, at::IntArrayRef shape, const std::vector<std::int64_t>& reduced) {
  const std::int64_t dims = static_cast<std::int64_t>(shape.size());
  if (mask.sizes() == shape) return mask;
  const bool dropped = !reduced.empty() && mask.dim() + static_cast<std::int64_t>(reduced.size()) == dims;
  if (const at::Tensor kept = dropped ? unsqueezed(mask, reduced) : mask; kept.defined())
    if (const auto wide = broadcast(kept, shape)) return *wide;
  if (mask.dim() < dims) return {};
  // The input was repeated: an element counts if one of its copies does.
  at::Tensor sum = mask.to(at::kLong);
  while (sum.dim() > dims) sum = sum.sum(0);
  for (std::int64_t d = 0; d < dims; ++d)
    if (shape[static_cast<std::size_t>(d)] == 1) sum = sum.sum(d, true);
  return sum.sizes() == shape ? sum > 0 : at::Tensor();
}

std::optional<Elements> pole_differentiated(const Case& c, Pole kind) {
  const std::int32_t forward = c.forward_of(c.op_index());
  if (!c.op() || c.op()->phase != Phase::backward || is_written_by_hand(*c.op()) ||
      c.calls(forward).size() != 1)
    return std::nullopt;
  auto e = elements_of(c, forward);
  const at::Tensor out = c.values(c.op_index()).bad_output();
  if (!e || e->semantics->pole_kind != kind || !out.defined()) return std::nullopt;
  e->born = at::logical_and(e->born, e->at_pole());
  if (count_true(e->born) == 0 || !covers(e->born, bad_mask(out))) return std::nullopt;
  return e;
}

bool is_written_by_hand(const OpRow& op) {
  // LibTorch numbers its own nodes (DivBackward0); Python names one after its Function's class
  // (ReluBackward).
  return op.node.ends_with("Backward") || op.node.starts_with("torch::autograd::CppNode");
}

}  // namespace nanquest
