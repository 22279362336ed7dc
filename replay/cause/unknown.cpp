// UNKNOWN: no cause explains every bad value. Says what was measured.
#include <ATen/ATen.h>

#include <algorithm>
#include <optional>

#include "probe/trace/op_numbers.h"
#include "replay/case/values.h"
#include "replay/cause/cause.h"
#include "replay/cause/opaque.h"
#include "replay/trace/operators.h"
#include "replay/verdict/numbers.h"

namespace nanquest {
namespace {

std::string seen_text(const at::Tensor& t) {
  if (!can_be_bad(t)) return "integers";
  const at::Tensor w = wide(t);
  std::string text = format_name(t);
  text += at::isfinite(w).any().item<bool>() ? ", amax " + number_text(finite_amax(t)) : ", nothing finite";
  if (const auto n = count_true(w == 0); n > 0) text += ", " + std::to_string(n) + " zeros";
  if (const auto n = count_true(w < 0); n > 0) text += ", " + std::to_string(n) + " negative";
  if (const auto n = count_true(at::isinf(w)); n > 0) text += ", " + std::to_string(n) + " Inf";
  if (const auto n = count_true(at::isnan(w)); n > 0) text += ", " + std::to_string(n) + " NaN";
  return text;
}

/// The result of the op's own reference function, if there is one here (it may be what ran). It does not name
/// a cause: it shows whether to look at the kernel or at its inputs.
void hold_against_reference(const Case& c, const OpValues& values, Finding& f) {
  OpRow reference = *c.op();
  if (!trace::is_reference(reference.name)) reference.name = trace::reference_name(reference.name);
  const at::Tensor bad = values.bad_output();
  if (!bad.defined() || all_finite(bad)) return;
  const auto exact = evaluate_all(reference, values.arguments, Precision::fp64);
  const auto which = std::find_if(values.outputs.begin(), values.outputs.end(),
                                  [&](const at::Tensor& t) { return t.is_same(bad); });
  const auto i = static_cast<std::size_t>(which - values.outputs.begin());
  if (!exact || i >= exact->size() || !(*exact)[i].defined() || (*exact)[i].sizes() != bad.sizes()) return;
  const at::Tensor& wanted = (*exact)[i];
  f.evidence.push_back({"its reference in fp64, on the same values", seen_text(wanted)});
  const auto amiss = [&](const at::Tensor& meant) {
    return count_true(bad_mask(bad).logical_and(bad_mask(meant).logical_not())) > 0;
  };
  if (!amiss(wanted)) {
    f.explanation +=
        " Its reference in fp64 gives NaN or Inf there too: it is what the operator computes of these "
        "values.";
    f.advice = "Look at what it was given (the inputs above), or guard the operator against it.";
  } else if (!amiss(wanted.to(bad.scalar_type()))) {
    f.explanation += " Its reference in fp64 is finite, but leaves the range of " + format_name(bad) + ".";
    f.advice = "Let the operator give fp32, or scale what it is given.";
  } else if (reference.name != c.op()->name) {
    f.not_computed = true;  // in a wider format its kernel computes as before
    f.explanation +=
        " Its reference in fp64, on the same values, is finite there and within the format's range: it is "
        "the "
        "kernel that goes wrong.";
    f.advice = "Look at the kernel: a format inside that is too narrow, a mask or a bound that is off.";
  }
}

std::optional<Origin> origin_of_state(SlotOrigin origin) {
  if (origin == SlotOrigin::parameter) return Origin::parameter;
  if (origin == SlotOrigin::buffer) return Origin::buffer;
  if (origin == SlotOrigin::optimizer_state) return Origin::optimizer_state;
  return std::nullopt;
}

/// The weight, buffer or moment out of which the op only copies what was bad there before; none if there is
/// none.
SlotId copied_from(const Case& c) {
  if (!moves_elements(c.op()->name)) return {};
  for (const Case::TensorArgument& a : c.tensor_arguments(c.op_index())) {
    const SlotId slot = c.graph().slot(TensorId{a.tensor});
    if (!slot || !origin_of_state(get(c.doc(), slot).origin)) continue;
    const auto before = c.read(get(c.doc(), slot).data);
    if (before && !all_finite(*before)) return slot;
  }
  return {};
}

}  // namespace

Finding unknown_finding(const Case& c) {
  Finding f;
  f.precision = true;
  if (!c.op()) {
    f.explanation =
        "The bad value came from outside the recorded ops" +
        (c.culprit().tensor_name.empty() ? std::string(".") : " (" + c.culprit().tensor_name + ").");
    return f;
  }
  if (const std::int32_t stopped = first_failed(c); stopped != kNone && stopped <= c.op_index()) {
    f.precision = false;
    f.not_computed = true;
    f.explanation = c.op_text(c.op_index()) +
                    " is where harm was first seen, but the replay here could not get there: " +
                    c.op_with_number(stopped) + " can't be run on this machine.";
    f.advice =
        "Replay the file where it was recorded: on such a device, with that version of PyTorch and the "
        "libraries that the "
        "program had loaded.";
    return f;
  }
  if (c.culprit().value != "silent" && c.healthy(c.whole(Precision::as_recorded))) {
    f.precision = false;
    f.not_computed = true;
    f.explanation =
        "The step is finite when it is run again from what was recorded: the harm did not come back. "
        "Something did "
        "it that is not on record: code outside of PyTorch that wrote there afterwards (NumPy, C++), an op "
        "that "
        "gives something else each time, another thread, or the machine. " +
        c.op_text(c.op_index()) + " is where it was first seen.";
    f.advice =
        "Record with level watch, which keeps a hash of every output: replay then finds the op where the two "
        "runs "
        "part.";
    return f;
  }
  if (const SlotId slot = copied_from(c)) {
    f.precision = false;
    f.not_computed = true;
    f.origin = origin_of_state(get(c.doc(), slot).origin);
    f.explanation =
        c.op_text(c.op_index()) + " copies bad values out of " + c.slot_text(slot.row()) +
        ". No operation on record wrote them: nothing has been written there yet, or they were bad in "
        "an earlier step.";
    f.advice = "Look at which parts of it are read, and at what fills it.";
    return f;
  }
  const OpValues& values = c.values(c.op_index());
  int i = 0;
  for (const at::Tensor& t : tensors_in(values.arguments))
    if (i < 6) f.evidence.push_back({"input " + std::to_string(i++), seen_text(t)});
  if (!values.outputs.empty() && values.bad_output().defined())
    f.evidence.push_back({"output", seen_text(values.bad_output())});
  f.explanation = c.op_text(c.op_index()) +
                  " made the first harmful value, but none of the causes that this version can "
                  "prove explains all of it.";
  hold_against_reference(c, values, f);
  return f;
}

}  // namespace nanquest
