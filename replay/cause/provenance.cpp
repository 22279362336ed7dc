#include "replay/cause/provenance.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "probe/trace/lead_ops.h"
#include "probe/trace/op_numbers.h"
#include "probe/trace/samples.h"
#include "probe/trace/state_since.h"
#include "replay/case/host_data.h"
#include "replay/case/values.h"
#include "replay/cause/known_data.h"
#include "replay/counterfactual/change.h"

namespace nanquest {
namespace {

bool is_bad_in_some_rows(const at::Tensor& t) {
  if (t.dim() < 1 || t.size(0) < 2) return false;
  const at::Tensor rows = bad_mask(t).reshape({t.size(0), -1}).any(1);
  return rows.any().item<bool>() && !rows.all().item<bool>();
}

/// A tensor with one row for each of the samples that were drawn. Of a single sample any one element has
/// that.
bool has_row_per_sample(const SnapshotDoc& doc, const std::vector<std::int64_t>& sizes) {
  return doc.sample_ids.size() > 1 && !sizes.empty() &&
         (sizes[0] == static_cast<std::int64_t>(doc.sample_ids.size()) ||
          (sizes[0] > 1 && sizes[0] == batch_size(doc)));
}

bool is_in_batch(const SnapshotDoc& doc, std::int32_t slot) {
  return slot != kNone && std::any_of(doc.batch.begin(), doc.batch.end(),
                                      [&](const NamedTensor& t) { return t.slot == slot; });
}

/// Whether ops outside of the modules move its elements, and compute nothing, into memory that the model was
/// called with; or join and copy them alone into some that has a row for each sample. A table that is indexed
/// by the samples' classes has that as well, and so has any number that is repeated.
bool is_moved_into_batch(const Case& c, SlotId slot, bool picked = false, int moves = 4) {
  for (const TraceGraph::Read& read : c.graph().reads(slot)) {
    const OpRow& op = c.graph().op(read.op);
    if (moves == 0 || op.phase != Phase::forward || !moves_elements(op.name) ||
        c.is_one_of(read.op.row(), {"expand", "repeat"}) || !c.module_of(read.op.row()).empty())
      continue;
    const bool picks = picked || c.is_one_of(read.op.row(), {"index", "index_select", "gather"});
    for (const TensorId row : c.graph().written(read.op)) {
      const SlotId made = c.graph().slot(row);
      if (!made || made == slot) continue;
      if (is_in_batch(c.doc(), made.row()) ||
          (!picks && has_row_per_sample(c.doc(), c.graph().tensor(row).sizes)) ||
          is_moved_into_batch(c, made, picks, moves - 1))
        return true;
    }
  }
  return false;
}

/// Why the loader that drew the samples gave this tensor too; null if it may be one of the program's own: a
/// constant, a table, a mask.
const char* comes_from_loader(const Case& c, const OutsideValue& value) {
  if (c.doc().sample_ids.empty()) return nullptr;
  if (is_given_to_model(c, value)) return "the model was called with it";
  if (is_in_batch(c.doc(), value.slot)) return "the model was called with a part of it";
  if (has_row_per_sample(c.doc(), value.tensor.sizes().vec())) return "it has a row for each of them";
  if (const SlotId slot{value.slot}; slot && is_moved_into_batch(c, slot))
    return "it is moved into the batch";
  return nullptr;
}

/// The fact that shows a value to be data that was loaded; "" if there is none.
std::string shown_as_data(const Case& c, const OutsideValue& value, const std::vector<std::int64_t>& poison) {
  if (is_target(c, value)) return "a loss takes it as its target";
  if (const char* const how = comes_from_loader(c, value))
    return std::string("a loader drew the samples, and ") + how;
  // Code outside of PyTorch may have made what no model was called with, from numbers of this very step.
  // Where no call of a model is on record (C++), a tensor that is bad in some rows only is taken for a batch.
  const std::string recorded = "what ran since the last update is on record and did not make it";
  if (lead_ops(c.doc()) != kNone) {
    if (is_given_to_model(c, value)) return "the model was called with it, and " + recorded;
    if (c.doc().batch.empty() && is_bad_in_some_rows(value.tensor))
      return "some of its rows hold it and others do not, and " + recorded;
  }
  const auto bad = static_cast<std::int64_t>(poison.size());
  if (const std::int64_t all = batch_size(c.doc()); bad > 0 && bad < all)
    return std::to_string(bad) + " of " + std::to_string(all) + " samples hold it, the others do not";
  return "";
}

/// A model or an optimizer has it: it has a name, or a sharded model gathers it. Otherwise it is known by its
/// use alone.
bool is_declared(const Case& c, const OutsideValue& value) {
  const SlotId slot{value.slot};
  if (!slot || get(c.doc(), slot).origin != SlotOrigin::external) return true;
  const auto& reads = c.graph().reads(slot);
  return std::any_of(reads.begin(), reads.end(), [&](const TraceGraph::Read& read) {
    return c.graph().op(read.op).name.starts_with("fsdp::");
  });
}

std::string step_text(std::int64_t step) {
  return "step " + std::to_string(step);
}

/// Every number of it that is finite is 0 or of an ordinary size, at least a part `least` of it. Memory that
/// nothing wrote holds zeros, what lay there before, or the NaN with which deterministic mode fills it.
bool is_ordinary_but_for_bad(const at::Tensor& wide, double least) {
  const at::Tensor finite = wide.masked_select(at::isfinite(wide)).abs();
  const at::Tensor ordinary = at::logical_and(finite > 1e-12, finite < 1e12);
  return static_cast<double>(finite.numel()) >= least * static_cast<double>(wide.numel()) &&
         at::logical_or(ordinary, finite == 0).all().item<bool>() &&
         2 * count_true(ordinary) >= finite.numel();
}

/// Infinities of one sign among ordinary numbers, or nothing else than such: something wrote them.
bool holds_written_infinity(const at::Tensor& t) {
  const at::Tensor w = wide(t);
  const bool one_sign = at::isposinf(w).any().item<bool>() != at::isneginf(w).any().item<bool>();
  return one_sign && !at::isnan(w).any().item<bool>() &&
         (is_ordinary_but_for_bad(w, 0.5) || (w.numel() > 1 && at::isinf(w).all().item<bool>()));
}

/// A few NaN among many ordinary numbers, where PyTorch doesn't fill new memory with NaN.
bool holds_written_nan(const SnapshotDoc& doc, const at::Tensor& t) {
  constexpr std::int64_t kMany = 64;
  const auto fills = doc.environment.find("deterministic_algorithms");
  if (fills == doc.environment.end() || fills->second != "false") return false;
  const at::Tensor w = wide(t);
  return w.numel() >= kMany && !at::isinf(w).any().item<bool>() && is_ordinary_but_for_bad(w, 0.9);
}

/// A weight or buffer with a name, in a model of which the file tells since when it has been there.
Provenance of_known_model(const SnapshotDoc& doc, const StateSince& since, const at::Tensor& value) {
  if (since.loaded && (since.step == doc.step || since.from_beginning))
    return {"load_state_dict gave it this value before its model was first called", ""};
  if (since.step < doc.step && !since.from_beginning)
    return {"it has been there since " + step_text(since.step) + ", and healthy steps were made with it", ""};
  const bool unused_before = since.from_beginning || since.step == doc.step;
  const std::string before = since.from_beginning ? "the first update" : "its first use";
  if (unused_before && (holds_written_infinity(value) || holds_written_nan(doc, value)))
    return {.shown = "it held these values before " + before +
                     ", and new memory does not look like that: the program wrote them",
            .open = "",
            .by_program = true};
  const std::string when = since.from_beginning
                               ? "It was bad before the first update of the program"
                               : "The model (or this tensor of it) runs for the first time in this step";
  return {"", "nothing shows that anything has written it: it may be memory that was never given a value",
          Label::uninitialized, " " + when + ", and load_state_dict gave it no value before that."};
}

}  // namespace

std::string doubt_of_written(const Case& c, const OutsideValue& value) {
  return value.host_write != kNone && host_data(c, OpId{value.host_write}) == HostData::open
             ? "what is bad there is the NaN with which deterministic mode fills new memory: the program "
               "wrote "
               "it through NumPy, or did not write there"
             : "";
}

Provenance provenance_of_data(const Case& c, const OutsideValue& value,
                              const std::vector<std::int64_t>& poison) {
  if (is_meant_elsewhere(c, value, poison))
    return {
        "",
        "the same infinity does no harm in other places: it is meant (a mask), and what one place does with "
        "it fails",
        {},
        " With a part of these infinities replaced the step is finite: the others do no harm, as in a mask."};
  if (value.host_write != kNone || !is_given_to_model(c, value)) {
    if (c.op() && c.op()->phase == Phase::backward)
      return {"",
              "the numbers came in during backward, where a derivative of the program's own may have "
              "computed them"};
    if (const SlotId kept = kept_by_copy(c, c.op_index()))
      return {"",
              "the numbers are copied into " + c.slot_text(kept.row()) +
                  ", so they may be a state that the program computed or loaded",
              Label::bad_state};
  }
  if (value.host_write != kNone)
    return {"the program wrote these numbers itself", doubt_of_written(c, value)};
  std::string shown = shown_as_data(c, value, poison);
  if (!shown.empty()) return {std::move(shown), ""};
  return {"", "the program may have computed this tensor before the step, and that is not on record"};
}

Provenance provenance_of_state(const Case& c, const OutsideValue& value) {
  const SnapshotDoc& doc = c.doc();
  if (!is_declared(c, value))
    return {
        "",
        "no model and no optimizer has this memory: it is called a " +
            std::string(value.group == "optimizer state" ? "moment" : "weight") +
            " by its use alone, and code of the program outside of PyTorch may have made it in this step"};
  if (value.group == "optimizer state") return {"an optimizer keeps it from step to step", ""};
  const char* const kind = value.group == "buffers" ? "buffer" : "parameter";
  if (const auto since = state_since(doc, kind, value.name)) return of_known_model(doc, *since, value.tensor);
  if (doc.step > 0) return {"the program names it as its state, and steps were made before this one", ""};
  return {"", "nothing shows that anything has written it: it may be memory that was never given a value",
          Label::uninitialized, " This is the first step, so what came before is not on record."};
}

bool is_meant_in_state(const Case& c, const OutsideValue& value) {
  const char* const kind = value.group == "buffers" ? "buffer" : "parameter";
  const auto since = state_since(c.doc(), kind, value.name);
  if (!since || !since->from_beginning || since->step >= c.doc().step || value.slot == kNone) return false;
  if (!holds_written_infinity(value.tensor)) return false;
  // An op that picks elements may meet the infinity for the first time.
  const OpId op{c.op_index()};
  if (!op || moves_elements(c.graph().op(op).name) || c.is_one_of(op.row(), {"embedding"})) return false;
  const auto reads = c.graph().reads(op);
  return std::any_of(reads.begin(), reads.end(), [&](TensorId row) {
    std::int64_t elements = 1;
    for (const std::int64_t n : c.graph().tensor(row).sizes) elements *= n;
    return c.graph().slot(row).row() == value.slot && elements >= value.tensor.numel();
  });
}

bool is_meant_elsewhere(const Case& c, const OutsideValue& value, const std::vector<std::int64_t>& poison) {
  constexpr std::size_t kMost = 8;
  const at::Tensor& t = value.tensor;
  if (value.slot == kNone || value.bad < 2) return false;
  const bool up = at::isposinf(t).any().item<bool>(), down = at::isneginf(t).any().item<bool>();
  if (at::isnan(t).any().item<bool>() || up == down) return false;
  const OutsidePlace place{value.slot, value.host_write};
  const auto helps = [&](const RunOptions& mended) {
    return c.has_time() && run_change(c, mended) == TrialResult::finite;
  };
  if (poison.size() > 1 && poison.size() <= kMost &&
      std::any_of(poison.begin(), poison.end(), [&](std::int64_t sample) {
        return helps(mend_sample(place, sample, batch_size(c.doc())));
      }))
    return true;
  return helps(mend_every_other(place));
}

}  // namespace nanquest
