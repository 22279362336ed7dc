// EMPTY_REDUCTION: a mean, a deviation or a loss over no element (for a deviation: over no more than its
// correction). Proof: the number of elements behind each result, from the recorded shapes, targets and
// weights, leaves nothing to divide by at every bad element.
#include <ATen/ATen.h>

#include <algorithm>

#include "replay/case/origin.h"
#include "replay/case/semantics.h"
#include "replay/case/values.h"
#include "replay/cause/cause.h"
#include "replay/cause/ignored_targets.h"
#include "replay/verdict/numbers.h"

namespace nanquest {
namespace {

/// What an op averages over.
struct Count {
  double elements = 0;    ///< behind each bad result
  double correction = 0;  ///< subtracted before dividing: 1 for a sample deviation
  std::string of;         ///< in words
};

/// Elements of `x` behind one element of the result.
Count per_result(const at::Tensor& x, const at::Tensor& out) {
  if (x.numel() == 0) return {0, 0, "elements"};
  return {static_cast<double>(x.numel()) / static_cast<double>(std::max<std::int64_t>(out.numel(), 1)), 0,
          "elements"};
}

/// Degrees of freedom that a deviation subtracts; overloads write it in different ways.
double correction_of(const Case& c) {
  const c10::IValue unbiased = argument(c, c.op_index(), "unbiased");
  if (unbiased.isBool()) return unbiased.toBool() ? 1 : 0;
  const c10::IValue correction = argument(c, c.op_index(), "correction");
  return correction.isScalar() ? correction.toScalar().toDouble() : 1;
}

/// Targets that count in a class loss, by their weights.
std::optional<Count> targets_of(const Case& c) {
  const std::int32_t op = c.op_index();
  const at::Tensor target = tensor_of(argument(c, op, "target"));
  const c10::IValue ignored = argument(c, op, "ignore_index"), reduction = argument(c, op, "reduction");
  if (!target.defined() || !ignored.isInt() || !reduction.isInt() || reduction.toInt() != 1)
    return std::nullopt;
  const at::Tensor counted = target != ignored.toInt();
  const at::Tensor weight = tensor_of(argument(c, op, "weight"));
  if (!weight.defined())
    return Count{static_cast<double>(count_true(counted)), 0, "targets that are not ignored"};
  const at::Tensor classes = target.masked_select(counted);
  return Count{wide(weight).index_select(0, classes.flatten().to(at::kLong)).sum().item<double>(), 0,
               "class weight of the targets that are not ignored"};
}

/// Segments of a segment_reduce that hold nothing, where every bad result is of one.
std::optional<Count> segments_of(const Case& c, const at::Tensor& out) {
  const std::int32_t op = c.op_index();
  at::Tensor lengths = tensor_of(argument(c, op, "lengths"));
  const at::Tensor offsets = tensor_of(argument(c, op, "offsets"));
  if (!lengths.defined() && offsets.defined()) lengths = offsets.diff();
  const c10::IValue reduce = argument(c, op, "reduce"), axis = argument(c, op, "axis");
  if (!lengths.defined() || lengths.dim() != 1 || !axis.isInt() || axis.toInt() != 0 ||
      out.size(0) != lengths.size(0) || !reduce.isString() || reduce.toStringRef() != "mean")
    return std::nullopt;
  const at::Tensor bad = bad_mask(out).reshape({out.size(0), -1}).any(1);
  if (count_true(at::logical_and(bad, lengths > 0)) > 0) return std::nullopt;
  return Count{0, 0, "elements of a segment"};
}

std::optional<Count> count_of(const Case& c, const Subject& reduction, const at::Tensor& out) {
  if (reduction.op.starts_with("nll_loss")) return targets_of(c);
  const at::Tensor x = tensor_of(argument(c, c.op_index(), reduction.argument));
  if (!x.defined() || !all_finite(x)) return std::nullopt;
  if (reduction.op == "segment_reduce") return segments_of(c, out);
  Count count = per_result(x, out);
  if (reduction.op.starts_with("std") || reduction.op.starts_with("var")) count.correction = correction_of(c);
  if (reduction.op.ends_with("_loss") || reduction.op.starts_with("binary")) {
    const c10::IValue how = argument(c, c.op_index(), "reduction");
    if (!how.isInt() || how.toInt() != 1) return std::nullopt;
  }
  return count;
}

Finding finding(const Case& c, const Subject& reduction, const Count& count, std::int64_t bad) {
  const std::string n = number_text(count.elements);
  const std::string_view counted = reduction.op.starts_with("nll_loss") ? "target" : reduction.argument;
  const auto ignored = ignored_targets(c, c.op_index(), counted);
  Finding f;
  f.source = "the number of elements in the recorded arguments: a mean of none is 0 / 0";
  f.evidence.push_back({count.of + " behind each bad result", n});
  if (count.correction > 0)
    f.evidence.push_back({"correction that is subtracted", number_text(count.correction)});
  f.evidence.push_back({"bad results", std::to_string(bad)});
  f.explanation =
      (ignored ? ignored->text + ". " : "") + c.op_text(c.op_index()) + " averages over " + n + " " +
      count.of +
      (count.correction > 0 ? " and divides by " + n + " - " + number_text(count.correction) : "") +
      ": there is nothing to divide by, and the result is NaN.";
  f.advice =
      ignored ? ignored->advice
      : count.correction > 0
          ? "Take a deviation of at least two elements, or set correction=0 (unbiased=False) and add an "
            "epsilon; skip groups of one."
          : "Skip the term when nothing is selected, or divide a sum by max(count, 1); drop samples and "
            "batches whose labels are all ignored.";
  f.wanted.push_back(skip_op(c, c.op_index()));
  f.unmoved.push_back(op_in(c, c.op_index(), Precision::fp64));
  return f;
}

std::optional<Finding> examine_empty_reduction(const Case& c, const Subject& reduction) {
  const at::Tensor out = c.values(c.op_index()).bad_output();
  if (!out.defined() || !out.is_floating_point() || all_finite(out)) return std::nullopt;
  const auto count = count_of(c, reduction, out);
  if (!count || count->elements - count->correction > 0) return std::nullopt;
  return finding(c, reduction, *count, count_true(bad_mask(out)));
}

}  // namespace

NANQUEST_CAUSE(empty_reduction) = {
    .label = Label::empty_reduction,
    .origins = {Origin::op},
    .ops = {{"mean", "self"},
            {"nanmean", "self"},
            {"median", "self"},
            {"nanmedian", "self"},
            {"std", "self"},
            {"var", "self"},
            {"std_mean", "self"},
            {"var_mean", "self"},
            {"segment_reduce", "data"},
            {"nll_loss_forward", "self"},
            {"nll_loss2d_forward", "self"},
            {"mse_loss", "self"},
            {"smooth_l1_loss", "self"},
            {"huber_loss", "self"},
            {"soft_margin_loss", "self"},
            {"multi_margin_loss", "self"},
            {"binary_cross_entropy", "self"},
            {"binary_cross_entropy_with_logits", "self"}},
    .depth = Depth::operand,
    .examine = examine_empty_reduction,
};

}  // namespace nanquest
