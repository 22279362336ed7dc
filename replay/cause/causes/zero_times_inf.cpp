// ZERO_TIMES_INF: 0 · inf where the infinity itself was intended. Proof: at every NaN one factor is exactly 0
// and the other infinite (in a matrix product: for one of the summed products), no operand holds NaN, and the
// infinity, followed back to the op that made it, is a number of the program or was in an input. An infinity
// that an op made of finite numbers (1 / 0) was not meant: another cause, and another op.
#include <ATen/ATen.h>

#include <limits>

#include "probe/trace/births.h"
#include "replay/case/origin.h"
#include "replay/case/semantics.h"
#include "replay/case/values.h"
#include "replay/cause/cause.h"
#include "replay/verdict/numbers.h"

namespace nanquest {
namespace {

constexpr double kLarge = 1e4;

/// The two factors of an op that multiplies, by their names in the schema.
struct Factors {
  std::string_view first, second;
  bool matrices;
};

std::optional<Factors> factors_of(std::string_view op) {
  if (op == "mul") return Factors{"self", "other", false};
  if (op == "addcmul") return Factors{"tensor1", "tensor2", false};
  if (op == "mm" || op == "bmm") return Factors{"self", "mat2", true};
  if (op == "addmm") return Factors{"mat1", "mat2", true};
  if (op == "baddbmm" || op == "addbmm") return Factors{"batch1", "batch2", true};
  if (op == "dot") return Factors{"self", "tensor", true};
  if (op == "mv") return Factors{"self", "vec", true};
  if (op == "addmv") return Factors{"mat", "vec", true};
  return std::nullopt;
}

/// Where a factor of 0 meets an infinite one, in the shape of the output.
std::optional<at::Tensor> meetings(const at::Tensor& a, const at::Tensor& b, bool matrices,
                                   at::IntArrayRef shape) {
  if (!matrices) {
    const auto x = broadcast(a, shape), y = broadcast(b, shape);
    if (!x || !y) return std::nullopt;
    return at::logical_or(at::logical_and(*x == 0, at::isinf(*y)), at::logical_and(at::isinf(*x), *y == 0));
  }
  const auto number = [](const at::Tensor& mask) { return mask.to(at::kDouble); };
  const at::Tensor met =
      at::matmul(number(a == 0), number(at::isinf(b))) + at::matmul(number(at::isinf(a)), number(b == 0));
  return broadcast(met > 0, shape);
}

/// The first argument of `op` that held an infinity and no NaN; none if there is none.
TensorId infinite_argument(const Case& c, OpId op) {
  for (const TensorId row : c.graph().reads(op))
    if (const StatsRow* s = c.graph().stats(row); s && s->pos_inf + s->neg_inf > 0 && s->nan == 0) return row;
  return {};
}

/// The infinity in `row`, as `op` reads it, is a number of the program or came from outside.
bool is_on_purpose(const Case& c, TensorId row, OpId op) {
  while (row) {
    const OpId maker = c.graph().producer(row, op);
    if (!maker || (c.graph().op(maker).flags & kOpHostWrite) || bad_constants(c.doc(), maker).infinite)
      return true;
    row = infinite_argument(c, maker);
    op = maker;
  }
  return false;
}

/// Of the factors, those that hold an infinity are on purpose.
bool are_on_purpose(const Case& c) {
  const OpId op{c.op_index()};
  if (bad_constants(c.doc(), op).infinite) return true;
  const TensorId row = infinite_argument(c, op);
  return row && is_on_purpose(c, row, op);
}

Finding finding(const Case& c, const Factors& factors, const at::Tensor& a, const at::Tensor& b,
                std::int64_t bad) {
  const bool first = count_true(at::isinf(a)) > 0;
  const std::string_view infinite = operand_name(*c.op(), first ? factors.first : factors.second);
  const at::Tensor& holder = first ? a : b;
  Finding f;
  f.source = "0 · Inf is NaN (IEEE 754-2019, 7.2)";
  f.evidence.push_back(
      {"infinite factors (" + std::string(infinite) + ")",
       std::to_string(count_true(at::isinf(holder))) + " of " + std::to_string(holder.numel())});
  f.evidence.push_back(
      {"NaN where one of them meets exactly 0", std::to_string(bad) + " of " + std::to_string(bad)});
  f.explanation = c.op_text(c.op_index()) + " multiplies an infinity by exactly 0 in " +
                  count_text(bad, "element") +
                  ", and 0 · Inf is NaN. The infinity was put in on purpose; a "
                  "product does not switch it off." +
                  maker_text(c, "It", computed_by(c, c.op_index(), infinite));
  f.advice =
      "Select with masked_fill or where instead of multiplying by a mask, or put a large finite number "
      "where the infinity is.";
  if (const auto number = number_of(c, c.op_index(), infinite);
      number && is_constant(c, c.op_index(), infinite))
    f.wanted.push_back(edit_constant(c, c.op_index(), infinite, *number, *number > 0 ? kLarge : -kLarge));
  else
    f.wanted.push_back(clamp_argument(c, c.op_index(), infinite, -kLarge, kLarge));
  f.unmoved.push_back(op_in(c, c.op_index(), Precision::fp64));
  return f;
}

std::optional<Finding> examine_zero_times_inf(const Case& c, const Subject& subject) {
  const auto factors = factors_of(subject.op);
  const at::Tensor out = c.values(c.op_index()).bad_output();
  if (!factors || !out.defined() || !out.is_floating_point()) return std::nullopt;
  const at::Tensor a = operand(c, c.op_index(), factors->first),
                   b = operand(c, c.op_index(), factors->second);
  if (!a.defined() || !b.defined()) return std::nullopt;
  for (const at::Tensor& t : tensors_in(c.values(c.op_index()).arguments))
    if (t.is_floating_point() && count_true(at::isnan(wide(t))) > 0) return std::nullopt;
  if (!are_on_purpose(c)) return std::nullopt;
  const auto met = meetings(a, b, factors->matrices, out.sizes());
  const at::Tensor bad = at::isnan(wide(out));
  if (!met || count_true(bad) == 0 || count_true(at::logical_and(bad, at::logical_not(*met))) > 0)
    return std::nullopt;
  return finding(c, *factors, a, b, count_true(bad));
}

}  // namespace

NANQUEST_CAUSE(zero_times_inf) = {
    .label = Label::zero_times_inf,
    .phases = {Phase::forward, Phase::optimizer},
    .ops = {{"mul", ""},
            {"addcmul", ""},
            {"mm", ""},
            {"bmm", ""},
            {"addmm", ""},
            {"addbmm", ""},
            {"baddbmm", ""},
            {"dot", ""},
            {"mv", ""},
            {"addmv", ""}},
    .examine = examine_zero_times_inf,
};

}  // namespace nanquest
