#include "replay/cause/unwritten_state.h"

#include <ATen/ATen.h>
#include <c10/util/accumulate.h>
#include <c10/util/strides.h>

#include <optional>
#include <string>

#include "replay/case/host_data.h"
#include "replay/case/values.h"
#include "replay/cause/culprit_info.h"
#include "replay/cause/outside_value.h"
#include "replay/trace/dtype_map.h"
#include "replay/verdict/numbers.h"

namespace nanquest {
namespace {

/// Which elements of the memory no op has written since `maker` handed it out; undefined if the writes can't
/// be followed.
at::Tensor unwritten(const Case& c, SlotId slot, OpId maker, std::int64_t elements) {
  at::Tensor mask = at::ones({elements}, at::kBool);
  const DType dtype = get(c.doc(), slot).dtype;
  for (const TraceGraph::Write& write : c.graph().writes(slot)) {
    if (!(maker < write.op)) continue;
    const TensorRow& row = c.graph().tensor(write.row);
    if (row.dtype != dtype) return {};
    std::int64_t last = row.storage_offset;
    bool empty = false;
    for (std::size_t d = 0; d < row.sizes.size(); ++d) {
      empty = empty || row.sizes[d] == 0;
      if (row.strides[d] < 0) return {};
      last += (row.sizes[d] - 1) * row.strides[d];
    }
    if (empty) continue;
    if (last >= elements) return {};
    mask.as_strided(row.sizes, row.strides, row.storage_offset).zero_();
  }
  return mask;
}

struct Unwritten {
  const NamedTensor* state;
  OpId maker;
  at::Tensor values, mask;  ///< in the shape of the state
};

std::optional<Unwritten> look_at(const Case& c, const NamedTensor& state) {
  const SlotId slot{state.slot};
  if (!slot || state.data.empty() || get(c.doc(), slot).origin != SlotOrigin::produced) return std::nullopt;
  const OpId maker = handed_out(c, slot, c.graph().end());
  if (!maker) return std::nullopt;
  const auto values = c.read(state.data);
  if (!values || !values->is_floating_point() || all_finite(*values)) return std::nullopt;
  // All of the memory, so that its elements are those of the state.
  const auto bytes = static_cast<std::uint64_t>(values->numel()) * values->element_size();
  if (bytes != get(c.doc(), slot).bytes) return std::nullopt;
  const at::Tensor mask = unwritten(c, slot, maker, values->numel());
  if (!mask.defined()) return std::nullopt;
  // In the shape in which it was made: a state that is known by its memory alone has none.
  const TensorRow& made = c.graph().tensor(c.graph().written(maker)[0]);
  const bool whole = at::IntArrayRef(made.strides).equals(c10::contiguous_strides(made.sizes)) &&
                     c10::multiply_integers(made.sizes) == values->numel();
  const at::IntArrayRef shape = whole ? at::IntArrayRef(made.sizes) : values->sizes();
  Unwritten found{&state, maker, values->reshape(shape), mask.view(shape)};
  const bool explains_all =
      count_true(at::logical_and(bad_mask(found.values), found.mask.logical_not())) == 0;
  return explains_all ? std::optional(std::move(found)) : std::nullopt;
}

void complete(const Case& c, const Unwritten& found, Origin origin, Verdict& v) {
  const std::string rows = rows_text(found.mask);
  const std::int64_t count = count_true(found.mask);
  const std::string elements = rows.empty() ? count_text(count, "element") : rows;
  v.found = true;
  v.cause = Label::uninitialized;
  v.origin = origin;
  v.phase = c.row(found.maker.row())->phase;
  v.culprit = culprit_info(c, found.maker.row());
  v.culprit.tensor = found.state->name;
  v.culprit.value = BadValue::mixed;
  v.culprit.count = static_cast<std::uint64_t>(count_true(bad_mask(found.values)));
  v.source = "the write ranges of the trace, and the values that the step left";
  v.evidence.push_back({"elements of " + found.state->name + " that no operation wrote",
                        std::to_string(count) + " of " + std::to_string(found.values.numel())});
  v.evidence.push_back({"non-finite in " + found.state->name + " after the step", bad_text(found.values)});
  v.explanation =
      c.op_with_number(found.maker.row()) + " made the memory of " + found.state->name +
      ", and no operation wrote " + elements +
      " of it before the step was over. They hold what lay in that memory before: " + bad_text(found.values) +
      ", all of them there.";
  v.advice = "Initialise the new elements (torch.nn.init, or zeros instead of empty) before they are used.";
  v.precision.verdict = PrecisionVerdict::not_a_precision_matter;
  Claim claim{Label::uninitialized, {}, {}, Depth::source};
  for (const Evidence& e : v.evidence) claim.facts_for.push_back(e.name + ": " + e.value);
  v.claims = {std::move(claim)};
}

}  // namespace

bool find_unwritten_state(const Case& c, Verdict& v) {
  const std::pair<Origin, const std::vector<NamedTensor>*> groups[] = {
      {Origin::parameter, &c.doc().parameters},
      {Origin::buffer, &c.doc().buffers},
      {Origin::optimizer_state, &c.doc().optimizer}};
  for (const auto& [origin, tensors] : groups)
    for (const NamedTensor& state : *tensors)
      if (const auto found = look_at(c, state)) {
        complete(c, *found, origin, v);
        return true;
      }
  return false;
}

}  // namespace nanquest
