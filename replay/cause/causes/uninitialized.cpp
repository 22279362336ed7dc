// UNINITIALIZED: memory was read that was never written. Proof: by the write ranges of the trace, the
// culprit's input shows memory as `empty` returned it (the record either saw the same bytes at the first read
// as at the allocation, or only partial writes lie between), and the step run with other contents of that
// memory is bad with one and good with another.
#include <ATen/ATen.h>

#include <algorithm>
#include <limits>
#include <set>

#include "replay/case/host_data.h"
#include "replay/case/values.h"
#include "replay/cause/cause.h"
#include "replay/cause/outside_value.h"
#include "replay/cause/provenance.h"
#include "replay/verdict/numbers.h"

namespace nanquest {
namespace {

bool may_be_written(const Case& c, OpId op) {
  return (c.graph().op(op).flags & kOpHostWrite) && host_data(c, op) == HostData::open;
}

/// The host write contains the very bytes that the memory held when it was allocated: it is no write, but the
/// record of a first read.
bool is_first_read(const Case& c, OpId op) {
  return (c.graph().op(op).flags & kOpHostWrite) &&
         (host_data(c, op) == HostData::first_read || may_be_written(c, op));
}

/// Ops that allocated, or recorded, memory that `row` shows unwritten before op `before`. Follows ops that
/// change a part of what they write in place.
void collect(const Case& c, TensorId row, OpId before, std::set<std::int32_t>& found, int depth) {
  (void)c.graph().each_write_behind(row, before, [&](const TraceGraph::Write& write) {
    const OpRow& op = c.graph().op(write.op);
    if (hands_out_unwritten(c, write.op) || is_first_read(c, write.op)) {
      found.insert(write.op.row());
      return true;
    }
    // index_put_, masked_fill_ and similar ops leave the rest as it was.
    if (depth > 0 && op.name.ends_with("_"))
      for (const TensorId read : c.graph().reads(write.op))
        if (c.graph().slot(read) == c.graph().slot(row)) collect(c, read, write.op, found, depth - 1);
    return false;
  });
}

std::vector<std::int32_t> sources(const Case& c) {
  std::set<std::int32_t> found;
  const OpId op{c.op_index()};
  if (is_first_read(c, op)) found.insert(op.row());
  if (hands_out_unwritten(c, op)) found.insert(op.row());
  for (const TraceGraph::Argument& a : c.graph().arguments(op)) collect(c, a.row, op, found, 4);
  return {found.begin(), found.end()};
}

/// Elements that the op leaves uninitialised: NaN if new memory is filled with NaN, something else otherwise,
/// while all others are the same both times. Undefined if it can't be run here.
at::Tensor left_here(const Case& c, const at::Tensor& bad) {
  at::Context& context = at::globalContext();
  const bool deterministic = context.deterministicAlgorithms(),
             filling = context.deterministicFillUninitializedMemory();
  const auto outputs = [&](bool fill) {
    context.setDeterministicAlgorithms(fill, true);
    context.setDeterministicFillUninitializedMemory(fill);
    return evaluate_all(*c.op(), c.values(c.op_index()).arguments, Precision::as_recorded);
  };
  const auto filled = outputs(true), plain = outputs(false);
  context.setDeterministicAlgorithms(deterministic,
                                     deterministic && context.deterministicAlgorithmsWarnOnly());
  context.setDeterministicFillUninitializedMemory(filling);
  if (!filled || !plain || filled->size() != plain->size()) return {};
  for (std::size_t i = 0; i < filled->size(); ++i) {
    const at::Tensor& a = (*filled)[i];
    if (!a.defined() || !a.is_floating_point() || a.sizes() != bad.sizes()) continue;
    return at::logical_and(is_fill(a), at::logical_not(is_fill((*plain)[i])));
  }
  return {};
}

/// An operator that is not PyTorch's left a part of its result uninitialised.
std::optional<Finding> left_unwritten(const Case& c) {
  if (c.op()->name.starts_with("aten::") || c.op()->name.starts_with("c10d") ||
      c.culprit().origin != word(Origin::op))
    return std::nullopt;
  const OpValues& values = c.values(c.op_index());
  const at::Tensor out = values.bad_output();
  if (!out.defined() || !out.is_floating_point() || out.element_size() < 2) return std::nullopt;
  for (const at::Tensor& t : tensors_in(values.arguments))
    if (!all_finite(t)) return std::nullopt;
  const at::Tensor bad = bad_mask(out);
  at::Tensor left = left_here(c, bad);
  const bool tried = left.defined();
  if (!tried) {
    const auto& environment = c.doc().environment;
    const auto found = environment.find("deterministic_algorithms");
    if (found == environment.end() || found->second != "true") return std::nullopt;
    left = is_fill(out);
  }
  const std::string rows = rows_text(bad);
  if (count_true(bad) == 0 || count_true(at::logical_and(bad, at::logical_not(left))) > 0 ||
      (!tried && rows.empty()))
    return std::nullopt;
  Finding f;
  f.not_computed = true;
  f.source = tried ? "the operator run on what it was given, with fresh memory filled with NaN and not"
                   : "the bits of what it returned: those that deterministic mode fills fresh memory with";
  f.evidence.push_back({"elements that the operator left as its memory was handed out",
                        std::to_string(count_true(bad)) + " of " + std::to_string(bad.numel())});
  f.explanation =
      (rows.empty() ? count_text(count_true(bad), "element") : rows) + " of what " + c.op_text(c.op_index()) +
      " returned were written by nobody: they hold what lay in its memory before (" +
      (tried ? "filled with NaN it is NaN there, and otherwise not" : "the NaN of deterministic mode") + ").";
  f.advice =
      "Let the operator write all of its output (check the ranges that its kernel covers), or make it with "
      "zeros "
      "instead of empty.";
  return f;
}

/// A weight or buffer of which nothing shows that it was ever written, and whose bad elements have the bits
/// with which deterministic mode fills new memory. A NaN of the program's own has the same; but a program
/// seldom writes nothing else.
std::optional<Finding> never_set(const Case& c) {
  const auto mode = c.doc().environment.find("deterministic_algorithms");
  if (mode == c.doc().environment.end() || mode->second != "true") return std::nullopt;
  const auto value = outside_value(c);
  if (!value || value->group == "batch" || value->tensor.element_size() < 2) return std::nullopt;
  const Provenance from = provenance_of_state(c, *value);
  const at::Tensor bad = bad_mask(value->tensor);
  if (from.rival != Label::uninitialized || !at::equal(bad, at::logical_and(bad, is_fill(value->tensor))))
    return std::nullopt;
  Finding f;
  f.not_computed = true;
  f.source = "the bits of its values: those with which deterministic mode fills new memory";
  f.evidence.push_back(
      {"elements of " + value->name + " that hold the fill of new memory", bad_text(value->tensor)});
  const bool all = value->bad == value->tensor.numel() && value->bad > 1;
  f.explanation = value->name + " (" + value->group + ") has " + (all ? "" : "perhaps ") +
                  "never been given a value: it holds " + bad_text(value->tensor) +
                  ", the NaN with which deterministic mode fills new memory." + from.known;
  f.advice =
      "Give " + value->name +
      " a value after the model is made (to_empty and torch.empty give none; what is not persistent is in no "
      "checkpoint).";
  if (!all) {
    f.doubt = "a NaN that the program wrote there itself has the same bits";
    f.rival = Label::bad_state;
  }
  if (value->slot != kNone) f.wanted.push_back(replace_non_finite(c, {value->slot}, value->name));
  return f;
}

std::optional<Finding> examine_uninitialized(const Case& c, const Subject&) {
  if (!c.op()) return std::nullopt;
  if (auto f = left_unwritten(c)) return f;
  if (auto f = never_set(c)) return f;
  const std::vector<std::int32_t> memory = sources(c);
  if (memory.empty()) return std::nullopt;
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  if (run_change(c, filled_memory(c, memory, kNaN)) != TrialResult::non_finite) return std::nullopt;
  Change zeros = filled_memory(c, memory, 0), ones = filled_memory(c, memory, 1);
  const bool with_zeros = run_change(c, zeros) == TrialResult::finite;
  const bool with_ones = run_change(c, ones) == TrialResult::finite;
  if (!with_zeros && !with_ones) return std::nullopt;
  OpId maker = OpId{memory.front()};
  if (const auto rows = c.graph().written(maker); !hands_out_unwritten(c, maker) && !rows.empty())
    if (const OpId from = handed_out(c, c.graph().slot(rows[0]), maker)) maker = from;
  Finding f;
  f.not_computed = true;
  if (std::any_of(memory.begin(), memory.end(), [&](std::int32_t op) { return may_be_written(c, OpId{op}); }))
    f.doubt = "the program may have written the same NaN there itself, through a view of NumPy's";
  // What an op of the step allocated did not exist when the step began.
  if (hands_out_unwritten(c, maker)) {
    f.origin = Origin::op;
    f.phase = c.op()->phase;
  }
  f.source = "the write ranges of the trace, and the step run with that memory filled otherwise";
  f.evidence.push_back({"memory nobody had written, handed out by", c.op_with_number(maker.row())});
  f.evidence.push_back({"the step with that memory filled with NaN", "non-finite"});
  f.evidence.push_back({"the step with that memory filled with 0", with_zeros ? "finite" : "non-finite"});
  f.evidence.push_back({"the step with that memory filled with 1", with_ones ? "finite" : "non-finite"});
  f.explanation = "Memory was read that nobody had written: " + c.op_with_number(maker.row()) +
                  " handed it out as it was, and the step's result hangs on what lay "
                  "there by chance: finite with one filling, not with another.";
  f.advice =
      "Make the tensor with zeros (or full) instead of empty, or write all of it before it is read; "
      "torch.utils.deterministic.fill_uninitialized_memory shows such reads as NaN.";
  f.wanted.push_back(with_zeros ? std::move(zeros) : std::move(ones));
  return f;
}

}  // namespace

NANQUEST_CAUSE(uninitialized) = {
    .label = Label::uninitialized,
    .depth = Depth::source,
    .of_recorded = true,
    .examine = examine_uninitialized,
};

}  // namespace nanquest
