// LOSS_SCALE: the scaler itself went wrong: its scale grew to infinity, became zero, or is so small that 1 /
// scale is infinite. Proof: the number by which the loss is multiplied before backward, as recorded, is not
// finite or zero, or the culprit computes that number or its reciprocal and gets an infinity. Gradients that
// overflow under a finite scale are normal for a scaler: another cause.
#include <ATen/ATen.h>

#include <cmath>
#include <set>

#include "replay/case/branch.h"
#include "replay/case/origin.h"
#include "replay/case/scale.h"
#include "replay/case/values.h"
#include "replay/cause/cause.h"
#include "replay/verdict/numbers.h"

namespace nanquest {
namespace {

constexpr double kSaneScale = 1024;
/// A factor of the loss larger than this is wrong itself, if the product overflows: 2^32, far above what a
/// scaler of fp16 (up to 2^24) can use.
constexpr double kAbsurdScale = 4294967296.0;

/// True if tensor row `tensor` was computed from the scale's storage by one-element ops only.
bool comes_from(const Case& c, std::int32_t tensor, std::int32_t before, std::int32_t slot, int hops = 6) {
  const TensorRow& row = c.doc().tensors[static_cast<std::size_t>(tensor)];
  for (const std::int64_t n : row.sizes)
    if (n != 1) return false;
  if (row.slot == slot) return true;
  const std::int32_t maker = c.producer(tensor, before);
  if (maker == kNone || hops == 0) return false;
  for (const Case::TensorArgument& a : c.tensor_arguments(maker))
    if (comes_from(c, a.tensor, maker, slot, hops - 1)) return true;
  return false;
}

/// Storage of the scale: what multiplies the loss, or what was registered as the scale; kNone if it is a
/// constant.
std::int32_t scale_slot(const Case& c, const std::optional<LossScale>& scale) {
  if (scale && scale->slot != kNone) return scale->slot;
  for (std::size_t i = 0; i < c.doc().slots.size(); ++i)
    if (c.doc().slots[i].origin == SlotOrigin::loss_scale) return static_cast<std::int32_t>(i);
  return kNone;
}

/// Replaces the scale, and the factor that removes it from the gradients, by values of a healthy scaler.
Change sane_scale(const Case& c, const std::optional<LossScale>& scale, std::int32_t slot) {
  if (slot != kNone && !c.doc().slots[static_cast<std::size_t>(slot)].data.empty())
    return replace_scalar(c, slot, "the loss scale", kSaneScale);
  Change all;
  if (!scale) return all;
  // A scale that the step computed: where it is made, and where it is divided out.
  if (const std::int32_t maker = scale->tensor == kNone ? kNone : c.producer(scale->tensor, scale->op);
      maker != kNone) {
    all.text = "the loss scale set to " + number_text(kSaneScale);
    all.kind = ChangeKind::hyperparameter;
    all.price = Price::protect_op;
    all.options.edit.output_edit[maker] = [](std::vector<at::Tensor>& written) {
      for (const at::Tensor& t : written)
        if (t.defined() && t.is_floating_point() && t.numel() == 1) at::Tensor(t).fill_(kSaneScale);
    };
    add_precision_placebo(c, all, scale->op, Precision::fp32);
  }
  const auto take = [&](std::int32_t op, double found, double sane) {
    for (std::size_t i = 0; i < c.values(op).arguments.size(); ++i) {
      const auto n = number_at(c, op, i);
      if (!n || (*n != found && !(std::isnan(*n) && std::isnan(found)))) continue;
      Change one = replace_setting(c, op, {"the loss scale", i, found, sane});
      all.options.edit.op_edit.merge(one.options.edit.op_edit);
      if (all.text.empty()) one.options = all.options, all = std::move(one);
    }
  };
  const auto take_factor = [&](std::int32_t op) {
    if (c.is_one_of(op, {"div"}))
      take(op, 1 / scale->value, 1 / kSaneScale);
    else
      take(op, scale->value, kSaneScale);
  };
  take_factor(scale->op);
  for (const std::int32_t op : derivative_ops(c, scale->op)) take_factor(op);
  for (std::int32_t i = scale->op; i < static_cast<std::int32_t>(c.doc().ops.size()); ++i) {
    if (!c.row(i)->node.empty() || (plain_name(*c.row(i)) != "mul" && plain_name(*c.row(i)) != "div"))
      continue;
    const auto arguments = c.tensor_arguments(i);
    if (i == scale->op || arguments.empty() || !is_gradient(c, arguments.front().tensor, i)) continue;
    take(i, scale->value, kSaneScale);
    take(i, 1 / scale->value, 1 / kSaneScale);
  }
  return all;
}

Finding finding(const Case& c, Change change, const std::string& what, double value) {
  Finding f;
  f.origin = Origin::loss_scale;
  f.source = "the scale as recorded, and the step run with another";
  f.evidence.push_back({"the loss scale", number_text(value)});
  f.evidence.push_back({"1 / scale", number_text(1 / value)});
  if (c.op()) f.evidence.push_back({"first op that it harms", c.op_text(c.op_index())});
  f.explanation = what + " The gradients themselves are not at fault.";
  f.advice =
      "Bound the scale on both sides (at least 1, at most 2^24 or so), keep it in fp32, and stop the run "
      "when "
      "it keeps falling: then something else is wrong in every step.";
  if (!change.text.empty()) f.wanted.push_back(std::move(change));
  return f;
}

/// The culprit computes with the scale: it makes the next scale, or its reciprocal.
std::optional<Finding> computed(const Case& c, const std::optional<LossScale>& scale, std::int32_t slot) {
  if (!c.op() || slot == kNone || (scale && c.op_index() == scale->op)) return std::nullopt;
  const OpValues& values = c.values(c.op_index());
  if (values.outputs.empty() || all_finite(values.bad_output())) return std::nullopt;
  const std::string name = plain_name(*c.op());
  const bool update = name == "_amp_update_scale";
  if (!update && values.bad_output().numel() != 1) return std::nullopt;
  std::optional<double> read;
  for (const Case::TensorArgument& a : c.tensor_arguments(c.op_index()))
    if (comes_from(c, a.tensor, c.op_index(), slot))
      if (const auto value = number_at(c, c.op_index(), static_cast<std::size_t>(a.position)); value && !read)
        read = value;
  if (!read || !std::isfinite(*read)) return std::nullopt;
  const bool grows = name == "mul" || name == "add" || name == "pow" || name == "exp2" || update;
  const bool inverts = name == "reciprocal" || name == "div" || name == "_to_copy" || name == "pow";
  const double value = scale ? scale->value : *read;
  if (grows && std::abs(*read) > 1)
    return finding(c, sane_scale(c, scale, slot),
                   c.op_text(c.op_index()) + " computes the next loss scale from " + number_text(*read) +
                       ", and that leaves the range of " + format_name(values.bad_output()) + ".",
                   value);
  if (inverts && std::abs(value) < 1)
    return finding(c, sane_scale(c, scale, slot),
                   c.op_text(c.op_index()) + " computes 1 / scale of a loss scale that was driven to " +
                       number_text(value) + ", and that is infinite.",
                   value);
  return std::nullopt;
}

/// Everything that the scale multiplies is finite.
bool loss_is_finite(const Case& c, const LossScale& scale) {
  for (const Case::TensorArgument& a : c.tensor_arguments(scale.op)) {
    if (a.tensor == scale.tensor || c.doc().tensors[static_cast<std::size_t>(a.tensor)].slot == scale.slot)
      continue;
    const at::Tensor t = tensor_of(c.values(scale.op).arguments[static_cast<std::size_t>(a.position)]);
    const bool is_the_scale =
        t.numel() == 1 && (wide(t).item<double>() == scale.value || scale.value != scale.value);
    if (!all_finite(t) && !is_the_scale) return false;
  }
  return true;
}

/// The culprit multiplies a finite loss by a factor that no scaler uses, and the product leaves the format.
std::optional<Finding> beyond_the_format(const Case& c, const LossScale& scale, std::int32_t slot) {
  if (c.op_index() != scale.op || !std::isfinite(scale.value) || std::abs(scale.value) <= kAbsurdScale)
    return std::nullopt;
  const at::Tensor product = c.values(scale.op).bad_output();
  if (!product.defined() || all_finite(product)) return std::nullopt;
  return finding(c, sane_scale(c, scale, slot),
                 "The loss was finite, but " + c.op_text(scale.op) + " multiplies it by " +
                     number_text(scale.value) + ", and that leaves the range of " + format_name(product) +
                     ".",
                 scale.value);
}

std::optional<Finding> examine_loss_scale(const Case& c, const Subject&) {
  const auto scale = loss_scale_of(c);
  const std::int32_t slot = scale_slot(c, scale);
  if (auto f = computed(c, scale, slot)) return f;
  if (!c.op() || !scale || !loss_is_finite(c, *scale)) return std::nullopt;
  if (auto f = beyond_the_format(c, *scale, slot)) return f;
  const bool infinite = !std::isfinite(scale->value);
  const bool vanished = scale->value == 0 || std::isinf(static_cast<float>(1 / scale->value));
  if (!infinite && !vanished) return std::nullopt;
  Change sane = sane_scale(c, scale, slot);
  if (sane.text.empty() || run_change(c, sane) != TrialResult::finite) return std::nullopt;
  return finding(c, std::move(sane),
                 infinite ? "The loss was finite, but it was multiplied by a loss scale of " +
                                number_text(scale->value) + ", and everything after it is infinite or NaN."
                          : "The loss scale was driven to " + number_text(scale->value) + ": " +
                                c.op_text(c.op_index()) +
                                " takes it out of the gradients again, and 1 / scale is "
                                "infinite.",
                 scale->value);
}

}  // namespace

NANQUEST_CAUSE(loss_scale) = {
    .label = Label::loss_scale,
    .depth = Depth::meaning,
    .examine = examine_loss_scale,
};

}  // namespace nanquest
