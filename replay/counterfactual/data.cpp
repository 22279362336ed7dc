#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "replay/blame/twin.h"
#include "replay/case/case.h"
#include "replay/case/values.h"
#include "replay/counterfactual/change.h"

namespace nanquest {
namespace {

/// Rows [begin, begin + length) of a storage seen as 1-D.
at::Tensor span_of(at::Tensor& storage, std::int64_t begin, std::int64_t length) {
  return storage.narrow(0, begin, length);
}

std::int64_t elements(const NamedTensor& t) {
  std::int64_t n = 1;
  for (std::int64_t s : t.shape) n *= s;
  return n;
}

/// A batch tensor whose samples lie one after the other in its own storage.
bool has_samples(const SnapshotDoc& doc, const NamedTensor& t, std::int64_t batch) {
  return t.slot != kNone && !t.shape.empty() && t.shape[0] == batch &&
         doc.slots[t.slot].bytes == static_cast<std::uint64_t>(elements(t)) * dtype_size(t.dtype);
}

/// Runs `write` on the value before it is first read.
void write_at(OutsidePlace place, const std::function<void(const at::Tensor&)>& write, TraceEdit& edit) {
  if (place.host_write == kNone)
    edit.slot_edit[place.slot] = [write](at::Tensor& storage) { write(storage); };
  else
    edit.output_edit[place.host_write] = [write](std::vector<at::Tensor>& written) {
      for (const at::Tensor& t : written)
        if (t.defined()) write(t);
    };
}

/// `write` on an outside value: its elements of a `kind` are replaced by `becomes`.
Change repaired(const Case& c, OutsidePlace place, const std::string& what, const std::string& kind,
                const std::string& becomes, const std::function<void(const at::Tensor&)>& write) {
  Change change;
  change.text = kind + " elements of " + what + becomes;
  change.kind = ChangeKind::data;
  change.size = ChangeSize::op;
  change.price = Price::data_repair;
  write_at(place, write, change.options.edit);
  const auto others = [write](const at::Tensor& values) { return write_elsewhere(values, write); };
  const auto stored =
      c.read(place.host_write == kNone ? c.doc().slots[static_cast<std::size_t>(place.slot)].data
                                       : c.doc().ops[static_cast<std::size_t>(place.host_write)].host_data);
  if (stored && can_be_bad(*stored)) {
    at::Tensor copy = stored->clone();
    if (others(copy) > 0) {
      RunOptions options;
      write_at(place, others, options.edit);
      change.placebo = {options};
      change.placebo_text = "as many finite elements of " + what + becomes;
    }
  }
  if (const std::int32_t other = placebo_slot(c, place.slot); change.placebo.empty() && other != kNone) {
    RunOptions options;
    write_at({other}, write, options.edit);
    change.placebo = {options};
    change.placebo_text = "the same on " + c.slot_text(other);
  }
  return change;
}

}  // namespace

Change replace_non_finite(const Case& c, OutsidePlace place, const std::string& what) {
  return repaired(c, place, what, "non-finite", " replaced by zero", zero_non_finite);
}

RunOptions mend_sample(OutsidePlace place, std::int64_t sample, std::int64_t batch) {
  RunOptions options;
  const auto mend = [=](const at::Tensor& values) {
    if (values.numel() % batch == 0) zero_non_finite(values.view({batch, -1}).select(0, sample));
  };
  write_at(place, mend, options.edit);
  return options;
}

RunOptions mend_every_other(OutsidePlace place) {
  RunOptions options;
  const auto mend = [](const at::Tensor& values) {
    if (!can_be_bad(values)) return;
    const at::Tensor places = bad_mask(values).flatten().nonzero().flatten();
    values.view({-1}).index_fill_(0, places.slice(0, 0, places.numel(), 2), 0);
  };
  write_at(place, mend, options.edit);
  return options;
}

std::optional<Change> replace_by_healthy(const Case& c, OutsidePlace place, const std::string& what) {
  const TwinRun* twin = c.twin();
  if (!twin || !twin->there() || place.host_write != kNone) return std::nullopt;
  const auto donor = twin->values_of(SlotId{place.slot});
  if (!donor) return std::nullopt;
  Change change;
  change.text = "non-finite elements of " + what + " replaced by what step " + std::to_string(twin->step()) +
                " had there";
  change.kind = ChangeKind::data;
  change.price = Price::data_repair;
  change.options.edit.slot_edit[place.slot] = [donor = *donor](at::Tensor& storage) {
    if (can_be_bad(storage) && donor.numel() == storage.numel())
      storage.copy_(at::where(bad_mask(storage), donor, storage));
  };
  RunOptions others;
  if (twin->put(others.edit, SlotId{place.slot}) &&
      !(others.edit.slot_edit.empty() && others.edit.output_edit.empty())) {
    change.placebo = {others};
    change.placebo_text = "everything else as step " + std::to_string(twin->step()) + " had it";
  }
  return change;
}

Change replace_negative(const Case& c, OutsidePlace place, const std::string& what) {
  return repaired(c, place, what, "negative", " replaced by their absolute values", [](const at::Tensor& t) {
    if (t.is_floating_point()) t.copy_(at::where(t < 0, -t, t));
  });
}

std::optional<Change> replace_samples(const Case& c, const std::vector<std::int64_t>& samples,
                                      std::int64_t donor) {
  const SnapshotDoc& doc = c.doc();
  const std::int64_t batch = batch_size(doc);
  Change change;
  for (const NamedTensor& t : doc.batch) {
    if (batch < 2 || !has_samples(doc, t, batch)) continue;
    const std::int64_t row = elements(t) / batch;
    change.options.edit.slot_edit[t.slot] = [samples, donor, row](at::Tensor& storage) {
      for (std::int64_t s : samples)
        span_of(storage, s * row, row).copy_(span_of(storage, donor * row, row).clone());
    };
  }
  if (change.options.edit.slot_edit.empty()) return std::nullopt;
  change.text = samples.size() == 1 ? "sample " + std::to_string(samples[0])
                                    : std::to_string(samples.size()) + " samples";
  change.text += " replaced by sample " + std::to_string(donor);
  change.kind = ChangeKind::data;
  change.size = ChangeSize::op;
  change.price = Price::data_repair;
  return change;
}

Change open_masked_rows(const Case& c, std::int32_t op, std::string_view argument,
                        const std::vector<std::int64_t>& dims, bool in_place) {
  const std::size_t position = argument_position(*c.row(op), argument).value_or(c.row(op)->arg_count);
  const auto open = [position, dims, in_place](std::vector<c10::IValue>& stack) {
    if (position >= stack.size() || !stack[position].isTensor()) return false;
    const at::Tensor x = stack[position].toTensor();
    if (!x.defined()) return false;
    for (const std::int64_t dim : dims)
      if (dim >= x.dim() || dim < -x.dim()) return false;
    const at::Tensor scores = in_place ? unexpanded(x) : x.clone();
    const bool logical = x.scalar_type() == at::kBool;
    at::Tensor closed =
        logical ? at::logical_not(scores) : scores == -std::numeric_limits<double>::infinity();
    for (const std::int64_t dim : dims) closed = at::all(closed, dim, true);
    scores.masked_fill_(closed, logical ? 1 : 0);
    if (!in_place) stack[position] = scores;
    return false;
  };
  Change change;
  change.text = "fully masked rows of " + c.op_text(op) + " opened (every entry gets the same score)";
  change.kind = ChangeKind::data;
  change.size = ChangeSize::op;
  change.price = Price::data_repair;
  change.options.edit.op_edit[op] = open;
  if (const std::int32_t other = placebo_op(c, op); other != kNone) {
    RunOptions options;
    const auto first = static_cast<std::size_t>(c.tensor_arguments(other).front().position);
    options.edit.op_edit[other] = [first](std::vector<c10::IValue>& stack) {
      if (first >= stack.size() || !stack[first].isTensor()) return false;
      const at::Tensor x = stack[first].toTensor();
      if (x.dim() == 0 || !x.is_floating_point()) return false;
      // One row of an unrelated op's result becomes zero: as large an intervention, in the wrong place.
      at::Tensor copy = x.clone();
      copy.select(0, 0).zero_();
      stack[first] = copy;
      return false;
    };
    change.placebo = {options};
    change.placebo_text = "one row of " + c.op_with_number(other) + " set to zero";
  }
  return change;
}

}  // namespace nanquest
