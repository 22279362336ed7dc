#include "replay/blame/neutral.h"

#include <ATen/ATen.h>

#include <memory>
#include <optional>
#include <vector>

#include "probe/numerics/format.h"
#include "probe/tensor/tensor_scan.h"
#include "replay/lab/call_again.h"

namespace nanquest {
namespace {

at::Tensor selected(const at::Tensor& values, const BadKinds& kinds) {
  at::Tensor mask = at::zeros_like(values, at::TensorOptions(at::kBool));
  if (kinds.nan) mask = at::logical_or(mask, at::isnan(values));
  if (kinds.infinite) mask = at::logical_or(mask, at::isinf(values));
  return mask;
}

/// Values like the finite elements: NaN becomes their mean, ±Inf ± their largest magnitude. In a tensor
/// without finite elements: zero and ±1.
at::Tensor like_neighbours(const at::Tensor& wide) {
  const at::Tensor finite = at::isfinite(wide);
  const bool some = finite.any().item<bool>();
  const double mean = some ? wide.masked_select(finite).mean().item<double>() : 0;
  const double amax = some ? wide.masked_select(finite).abs().max().item<double>() : 1;
  return at::nan_to_num(wide, mean, amax, -amax);
}

/// Writes harmless values over the bad ones of `t`. `above`, of the same size, is used where it is finite;
/// may be undefined.
void replace_bad(const at::Tensor& t, const BadKinds& kinds, Neutral neutral, const at::Tensor& above) {
  if (t.defined() && t.is_complex() && !t.is_conj())
    return replace_bad(
        at::view_as_real(t), kinds, neutral,
        above.defined() && above.is_complex() ? at::view_as_real(above.resolve_conj()) : at::Tensor());
  if (!t.defined() || !t.is_floating_point() || t.numel() == 0) return;
  const at::Tensor wide = t.to(at::kDouble);
  const at::Tensor mask = selected(wide, kinds);
  if (!mask.any().item<bool>()) return;
  at::Tensor instead;
  if (neutral == Neutral::above || neutral == Neutral::healthy) {
    const double limit = limit_of(t.scalar_type());
    instead = like_neighbours(wide);
    if (above.defined() && above.sizes() == wide.sizes()) {
      const at::Tensor up = above.to(at::kDouble);
      instead = at::where(at::isfinite(up), up, instead);
    }
    instead = instead.clamp(-limit, limit);
  } else {
    instead = at::full_like(wide, neutral == Neutral::one ? 1.0 : 0.0);
  }
  t.copy_(at::where(mask, instead, wide));
}

/// The tensor of a call's results that is entry `entry` of `count` written ones; undefined if unknown.
at::Tensor entry_of(const std::optional<OpResults>& results, std::size_t entry, std::size_t count) {
  if (!results) return {};
  for (const auto* tensors : {&results->returned, &results->written})
    if (tensors->size() == count) return (*tensors)[entry];
  return {};
}

void neutralise_op(const TraceGraph& graph, const Suspect& suspect, Neutral neutral, TraceEdit& edit) {
  const auto above = std::make_shared<std::optional<OpResults>>();  // one precision up, with the inputs it is
                                                                    // given
  const std::int32_t op = suspect.op.row();
  if (neutral == Neutral::above || neutral == Neutral::healthy)
    edit.op_edit[op] = [above, &row = graph.op(suspect.op)](std::vector<c10::IValue>& stack) {
      const CallAgain call(row, stack);
      const auto type = call.one_up();
      *above = type ? call.in(*type) : std::nullopt;
      return false;
    };
  edit.output_edit[op] = [above, neutral, kinds = suspect.kinds](std::vector<at::Tensor>& written) {
    for (std::size_t i = 0; i < written.size(); ++i)
      replace_bad(written[i], kinds, neutral, entry_of(*above, i, written.size()));
  };
}

}  // namespace

double limit_of(at::ScalarType type) {
  const auto dtype = dtype_of(type);
  const auto format = dtype ? format_of(*dtype) : std::nullopt;
  return format ? info(*format).max_finite : 1e38;
}

void neutralise(const TraceGraph& graph, const Suspect& suspect, Neutral neutral, TraceEdit& edit,
                const HealthyValues& healthy) {
  const SlotId slot = suspect.row ? graph.slot(suspect.row) : SlotId{};
  if (!slot) return neutralise_op(graph, suspect, neutral, edit);
  // What the host wrote while the step ran is there from then on.
  if (const OpId host = graph.producer(suspect.row, suspect.op)) {
    edit.output_edit[host.row()] = [neutral, kinds = suspect.kinds](std::vector<at::Tensor>& written) {
      for (const at::Tensor& t : written) replace_bad(t, kinds, neutral, {});
    };
    return;
  }
  at::Tensor donor;
  if (neutral == Neutral::healthy && healthy) donor = healthy(slot).value_or(at::Tensor());
  edit.slot_edit[slot.row()] = [neutral, kinds = suspect.kinds, donor](at::Tensor& storage) {
    replace_bad(storage, kinds, neutral, donor);
  };
}

}  // namespace nanquest
