// INFEASIBLE_TARGET: a target that is impossible for the loss. Proof, for a CTC loss, from the recorded
// lengths and labels: the infinite losses are those of the sequences whose input has fewer steps than the
// target needs (its labels, and a blank between equal ones). For a class loss: the infinite losses are those
// of targets whose class has a recorded log-probability of -Inf.
#include <ATen/ATen.h>

#include <algorithm>
#include <limits>

#include "replay/case/values.h"
#include "replay/cause/cause.h"
#include "replay/verdict/numbers.h"

namespace nanquest {
namespace {

/// A list of whole numbers, whether the overload takes a list or a tensor.
std::vector<std::int64_t> whole_numbers(const c10::IValue& value) {
  if (value.isIntList()) return value.toIntVector();
  std::vector<std::int64_t> found;
  const at::Tensor t = tensor_of(value);
  if (!t.defined()) return found;
  const at::Tensor flat = t.detach().to(at::kCPU).to(at::kLong).flatten();
  for (std::int64_t i = 0; i < flat.numel(); ++i) found.push_back(flat[i].item<std::int64_t>());
  return found;
}

/// Steps that a target needs: its labels, and one more between two equal ones (Graves et al. 2006).
std::int64_t steps_needed(const at::Tensor& labels) {
  std::int64_t needed = labels.numel();
  for (std::int64_t i = 1; i < labels.numel(); ++i)
    needed += labels[i].item<std::int64_t>() == labels[i - 1].item<std::int64_t>() ? 1 : 0;
  return needed;
}

struct Ctc {
  std::vector<std::int64_t> inputs, targets, needed;
  bool feasible(std::size_t b) const { return needed[b] <= inputs[b]; }
};

std::optional<Ctc> ctc_of(const Case& c) {
  const std::int32_t op = c.op_index();
  Ctc ctc{
      whole_numbers(argument(c, op, "input_lengths")), whole_numbers(argument(c, op, "target_lengths")), {}};
  const at::Tensor targets = tensor_of(argument(c, op, "targets"));
  if (!targets.defined() || ctc.inputs.empty() || ctc.inputs.size() != ctc.targets.size())
    return std::nullopt;
  std::int64_t begin = 0;
  for (std::size_t b = 0; b < ctc.targets.size(); ++b) {
    const std::int64_t n = ctc.targets[b];
    const at::Tensor own = targets.dim() == 2 ? targets[static_cast<std::int64_t>(b)].narrow(0, 0, n)
                                              : targets.narrow(0, begin, n);
    begin += n;
    ctc.needed.push_back(steps_needed(own));
  }
  return ctc;
}

/// What zero_infinity=True does: an infinite loss counts as 0 and has no gradient.
Change zero_infinity(const Case& c) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const at::Tensor losses = c.values(c.op_index()).outputs.front();
  Change change;
  change.text = "zero_infinity=True in " + c.op_text(c.op_index());
  change.kind = ChangeKind::op;
  change.size = ChangeSize::op;
  change.price = Price::protect_op;
  change.options.edit.output_edit[c.op_index()] = [](std::vector<at::Tensor>& outputs) {
    if (!outputs.empty() && outputs[0].defined()) outputs[0].masked_fill_(outputs[0] == infinity, 0);
  };
  for (std::int32_t i = c.op_index() + 1; i < static_cast<std::int32_t>(c.doc().ops.size()); ++i) {
    if (c.forward_of(i) != c.op_index()) continue;
    const auto flag = argument_position(*c.row(i), "zero_infinity");
    const auto loss = argument_position(*c.row(i), "neg_log_likelihood");
    if (!flag || !loss) continue;
    change.options.edit.op_edit[i] = [f = *flag, l = *loss, losses](std::vector<c10::IValue>& stack) {
      // It recognises the samples to leave out by their infinite loss, which was replaced above.
      stack[l] = losses.to(stack[l].toTensor().scalar_type());
      stack[f] = true;
      return false;
    };
  }
  add_precision_placebo(c, change, c.op_index(), Precision::fp64);
  return change;
}

std::optional<Finding> ctc_loss(const Case& c, const at::Tensor& out) {
  const at::Tensor x = tensor_of(argument(c, c.op_index(), "log_probs"));
  const auto ctc = ctc_of(c);
  if (!ctc || !x.defined() || count_true(at::isnan(wide(x))) > 0) return std::nullopt;
  const at::Tensor bad = bad_mask(out).flatten();
  if (bad.numel() != static_cast<std::int64_t>(ctc->needed.size())) return std::nullopt;
  Finding f;
  std::string first;
  for (std::size_t b = 0; b < ctc->needed.size(); ++b) {
    if (!bad[static_cast<std::int64_t>(b)].item<bool>()) continue;
    if (ctc->feasible(b)) return std::nullopt;
    f.poison.push_back(static_cast<std::int64_t>(b));
    if (first.empty())
      first = "sample " + std::to_string(b) + " needs " + std::to_string(ctc->needed[b]) + " steps for its " +
              std::to_string(ctc->targets[b]) + " labels and has " + std::to_string(ctc->inputs[b]);
  }
  if (f.poison.empty()) return std::nullopt;
  const auto b = static_cast<std::size_t>(f.poison.front());
  f.source = "no alignment exists: the sum over none is 0, its -log is Inf (Graves et al. 2006)";
  f.evidence.push_back({"steps that the target of sample " + std::to_string(b) + " needs",
                        std::to_string(ctc->needed[b]),
                        std::to_string(std::max<std::int64_t>(ctc->inputs[b], 1))});
  f.evidence.push_back({"samples whose target does not fit, of those with a bad loss",
                        std::to_string(f.poison.size()) + " of " + std::to_string(f.poison.size())});
  f.explanation = c.op_text(c.op_index()) + " can't meet the target of " +
                  count_text(static_cast<std::int64_t>(f.poison.size()), "sample") + ": " + first +
                  " (equal labels need a blank between them).";
  f.advice =
      "Drop or cut samples whose target is longer than the input after subsampling, or set "
      "zero_infinity=True, which leaves them out.";
  f.wanted.push_back(zero_infinity(c));
  f.unmoved.push_back(op_in(c, c.op_index(), Precision::fp64));
  return f;
}

std::optional<Finding> class_loss(const Case& c, const at::Tensor& out) {
  const at::Tensor x = tensor_of(argument(c, c.op_index(), "self"));
  const at::Tensor target = tensor_of(argument(c, c.op_index(), "target"));
  const c10::IValue ignored = argument(c, c.op_index(), "ignore_index");
  if (!x.defined() || !target.defined() || !ignored.isInt() || x.dim() < 1) return std::nullopt;
  const at::Tensor log_p = wide(x);
  if (count_true(at::isnan(log_p)) > 0) return std::nullopt;
  const std::int64_t dim = x.dim() == 1 ? 0 : 1;
  const at::Tensor counted = target != ignored.toInt();
  const at::Tensor label = at::where(counted, target, at::zeros_like(target)).unsqueeze(dim);
  const at::Tensor given = log_p.gather(dim, label).squeeze(dim);
  const at::Tensor impossible = at::logical_and(counted, given == -std::numeric_limits<double>::infinity());
  const std::int64_t n = count_true(impossible);
  if (n == 0) return std::nullopt;
  const at::Tensor bad = bad_mask(out);
  if (out.sizes() == impossible.sizes() && count_true(at::logical_and(bad, at::logical_not(impossible))) > 0)
    return std::nullopt;
  Finding f;
  f.source = "the recorded log-probabilities at the recorded targets";
  f.evidence.push_back({"targets on a class of probability 0",
                        std::to_string(n) + " of " + std::to_string(count_true(counted))});
  f.explanation =
      c.op_text(c.op_index()) + " is asked for " + count_text(n, "target") +
      " whose class has probability 0 (log-probability -Inf, as of a masked class): no output can "
      "meet it, and the loss is infinite.";
  f.advice = "Don't mask the class of a target (mask after checking the label), or ignore these targets.";
  f.wanted.push_back(clamp_argument(c, c.op_index(), "self", -1e4, std::numeric_limits<double>::quiet_NaN()));
  f.unmoved.push_back(op_in(c, c.op_index(), Precision::fp64));
  if (impossible.dim() == 1)
    for (std::int64_t s = 0; s < impossible.numel() && impossible.numel() == batch_size(c.doc()); ++s)
      if (impossible[s].item<bool>()) f.poison.push_back(s);
  return f;
}

std::optional<Finding> examine_infeasible_target(const Case& c, const Subject& subject) {
  const at::Tensor out =
      c.values(c.op_index()).outputs.empty() ? at::Tensor() : c.values(c.op_index()).outputs.front();
  if (!out.defined() || all_finite(out)) return std::nullopt;
  return subject.op == "_ctc_loss" ? ctc_loss(c, out) : class_loss(c, out);
}

}  // namespace

NANQUEST_CAUSE(infeasible_target) = {
    .label = Label::infeasible_target,
    .origins = {Origin::op},
    .ops = {{"_ctc_loss", "targets"}, {"nll_loss_forward", "target"}, {"nll_loss2d_forward", "target"}},
    .depth = Depth::operand,
    .examine = examine_infeasible_target,
};

}  // namespace nanquest
