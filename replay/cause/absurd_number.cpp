#include "replay/cause/absurd_number.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "probe/base/one_of.h"
#include "probe/trace/op_numbers.h"
#include "probe/trace/origins.h"
#include "replay/case/origin.h"
#include "replay/case/values.h"

namespace nanquest {
namespace {

/// The op's result is used by a softmax or a sigmoid within a few ops: it was a logit.
bool is_logit(const Case& c, std::int32_t op) {
  static const std::set<std::string> ends = {
      "_softmax",    "_log_softmax",   "softmax",
      "log_softmax", "sigmoid",        "log_sigmoid_forward",
      "logsumexp",   "gumbel_softmax", "binary_cross_entropy_with_logits",
      "multinomial"};
  const std::set<std::int32_t> users = c.readers_within(op, 4);
  return std::any_of(users.begin(), users.end(),
                     [&](std::int32_t user) { return ends.count(plain_name(*c.row(user))) > 0; });
}

/// An op that keeps what a moment is: it is scaled, added to, or a root is taken of it.
bool keeps_moment(const OpRow& op) {
  return op.phase == Phase::optimizer &&
         (moves_elements(op.name) || is_one_of(plain_name(op), {"add", "addcmul", "lerp", "mul", "sqrt"}));
}

/// It lives on from step to step, and updates alone look at it.
bool is_moment(const TraceGraph& graph, SlotId slot) {
  if (origin_of(graph, slot) == SlotOrigin::optimizer_state) return true;
  const auto& reads = graph.reads(slot);
  return get(graph.doc(), slot).origin == SlotOrigin::external &&
         std::all_of(reads.begin(), reads.end(), [&](const TraceGraph::Read& read) {
           return graph.op(read.op).phase == Phase::optimizer;
         });
}

/// What is divided is a moment, its next value, or the root of one: the divisor is a bias correction.
bool divides_a_moment(const Case& c, std::int32_t division) {
  constexpr std::size_t kMostOps = 8;
  const TraceGraph& graph = c.graph();
  std::vector<std::vector<std::int64_t>> shapes;
  for (const TraceGraph::Argument& a : graph.arguments(OpId{division}))
    if (a.position == 0 && a.row) shapes.push_back(graph.tensor(a.row).sizes);
  std::vector<OpId> open = {OpId{division}};
  for (std::size_t i = 0; i < open.size() && open.size() < kMostOps; ++i)
    for (const TraceGraph::Argument& a : graph.arguments(open[i])) {
      if (!a.row || !graph.slot(a.row) || (i == 0 && a.position != 0) ||
          std::find(shapes.begin(), shapes.end(), graph.tensor(a.row).sizes) == shapes.end())
        continue;
      const OpId maker = graph.producer(a.row, open[i]);
      if (!maker && is_moment(graph, graph.slot(a.row))) return true;
      if (maker && keeps_moment(graph.op(maker))) open.push_back(maker);
    }
  return false;
}

/// The result of `op` has fewer elements than its inputs.
bool is_reduced(const Case& c, std::int32_t op) {
  if (!c.row(op)) return false;
  const OpValues& values = c.values(op);
  const std::int64_t made =
      values.outputs.empty() || !values.outputs[0].defined() ? 0 : values.outputs[0].numel();
  const std::vector<at::Tensor> read = tensors_in(values.arguments);
  return std::any_of(read.begin(), read.end(), [&](const at::Tensor& t) { return t.numel() > made; });
}

/// Another operand is a yes/no tensor: what an infinity does to a mask belongs to another cause.
bool multiplies_a_mask(const Case& c, std::int32_t op, std::size_t position) {
  const std::size_t n = c.values(op).arguments.size();
  for (std::size_t i = 0; i < n; ++i)
    if (i != position && is_selection(c, op, i)) return true;
  return false;
}

/// A marker for missing values was put into what a model computed.
std::optional<Reason> mark(const Case& c, std::int32_t at, const Number& n) {
  if (std::isfinite(n.value) || works_on_data(c, at)) return std::nullopt;
  if (!std::isnan(n.value) && at != c.op_index()) return std::nullopt;
  return Reason{"the number that is written (" + role_of(c, at, n) + ")",
                std::isnan(n.value) ? "it is not a number" : "it is infinite", 0, true};
}

}  // namespace

std::optional<Reason> why_absurd(const Case& c, std::int32_t at, const Number& n) {
  const std::string op = plain_name(*c.row(at));
  const bool update = c.row(at)->phase == Phase::optimizer;
  const std::string argument = role_of(c, at, n);
  const bool division = (op == "div" || op == "true_divide") && (n.name == "other" || n.name == "scalar");
  if (division && n.value == 0 && update && divides_a_moment(c, at))
    return Reason{"the bias correction 1 - beta^t (" + argument + ")",
                  "it is 0: a beta of 1, or no step counted", 0.1};
  // What else was computed went wrong in an operation, which another cause explains.
  if (n.computed) return std::nullopt;
  const bool multiplication = op == "mul" && (n.name == "other" || n.name == "self");
  // In other ops these names may stand for a number that is written.
  const bool factor =
      ((op == "addcmul" || op == "addcdiv") && n.name == "value") || (op == "lerp" && n.name == "weight");
  if (writes_marks(op)) return mark(c, at, n);
  if (n.name == "ord" || n.name == "p" || n.name == "norm_type") return std::nullopt;
  if (std::isnan(n.value))
    return Reason{argument, "it is not a number", division || multiplication ? 1.0 : 0.0};
  static const std::set<std::string> settings = {"alpha",  "beta",         "eps",       "momentum",
                                                 "lr",     "beta1",        "beta2",     "value",
                                                 "weight", "weight_decay", "dampening", "scale"};
  if (std::isinf(n.value)) {
    if (settings.count(n.name) && (update || factor || (n.name != "value" && n.name != "weight")))
      return Reason{argument, "it is infinite", 0};
    // A learning rate may have its sign turned before it multiplies an update.
    if ((multiplication || op == "neg") && update) return Reason{argument, "it is infinite", 1};
    if (multiplication && !multiplies_a_mask(c, at, n.position) && (n.tensor == kNone || n.value > 0))
      return Reason{is_logit(c, at) ? "the factor of the logits (1 / temperature, " + argument + ")"
                                    : "the factor (" + argument + ")",
                    "it is infinite", 1};
    if (op == "pow" && n.name == "exponent")
      return Reason{"the exponent (" + argument + ")", "it is infinite", 1};
    return std::nullopt;
  }
  if (n.name == "eps" && n.value < 0) return Reason{argument, "an epsilon below 0 protects nothing", 1e-5};
  if ((n.name == "beta1" || n.name == "beta2") && (n.value >= 1 || n.value < 0))
    return Reason{argument, "a beta must lie in [0, 1): with 1 the bias correction 1 - beta^t is 0", 0.9};
  if (division && n.value == 0 && !update && is_logit(c, at))
    return Reason{"the temperature (" + argument + ")", "logits are divided by it, and it is 0", 1};
  // A sum may be divided by a count of zero; each element by itself is divided by a number that was chosen.
  if (division && n.value == 0 && !update && n.tensor == kNone && is_real_number(c, at, "other") &&
      !is_reduced(c, computed_by(c, at, "self")))
    return Reason{"the divisor (" + argument + ")", "every element is divided by it, and it is 0", 1};
  return std::nullopt;
}

}  // namespace nanquest
