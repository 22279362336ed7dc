#include "replay/case/semantics.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "replay/case/values.h"

namespace nanquest {
namespace {

using at::Tensor;

Tensor nowhere(const Tensor& like) {
  return at::zeros(like.sizes(), at::kBool);
}

/// Bad elements that the op itself made.
Tensor born_in(const Tensor& output, const std::vector<Tensor>& operands) {
  Tensor nan = nowhere(output), bad = nowhere(output);
  for (const Tensor& x : operands) {
    if (!x.defined()) continue;
    nan = at::logical_or(nan, at::isnan(x));
    bad = at::logical_or(bad, at::logical_not(at::isfinite(x)));
  }
  const Tensor out = wide(output);
  return at::logical_or(at::logical_and(at::isnan(out), at::logical_not(nan)),
                        at::logical_and(at::isinf(out), at::logical_not(bad)));
}

}  // namespace

Tensor Elements::outside() const {
  return semantics->outside ? semantics->outside(operands) : nowhere(output);
}

Tensor Elements::at_pole() const {
  return semantics->pole ? semantics->pole(operands) : nowhere(output);
}

Tensor Elements::exponential() const {
  return semantics->exponential ? semantics->exponential(operands) : nowhere(output);
}

Tensor Elements::beyond() const {
  const auto limit = format_max(output);
  if (!semantics->log2_size || !limit) return nowhere(output);
  // Rounding to nearest: half a step below the largest number is still inside.
  return semantics->log2_size(operands) > std::log2(*limit) - 1e-3;
}

const Tensor& Elements::argument() const {
  const auto at = std::find(semantics->operands.begin(), semantics->operands.end(), semantics->argument);
  return operands[static_cast<std::size_t>(at - semantics->operands.begin())];
}

std::string_view operand_name(const OpRow& op, std::string_view name) {
  static const std::pair<std::string_view, std::string_view> aliases[] = {
      {"other", "scalar"}, {"other", "scalars"}, {"other", "tensor"}};
  if (argument_position(op, name)) return name;
  for (const auto& [usual, foreach_name] : aliases)
    if (name == usual && argument_position(op, foreach_name)) return foreach_name;
  return name;
}

Tensor operand(const Case& c, std::int32_t op, std::string_view name) {
  if (!c.row(op)) return {};
  const Tensor given = operand_of(argument(c, op, operand_name(*c.row(op), name)));
  return given.defined() && !given.is_complex() ? wide(given) : Tensor();
}

std::optional<Elements> elements_of(const Case& c, std::int32_t op) {
  const OpRow* row = c.row(op);
  Elements e;
  e.semantics = row ? semantics_of(plain_name(*row)) : nullptr;
  if (!e.semantics) return std::nullopt;
  e.output = c.values(op).bad_output();
  if (!e.output.defined() || !e.output.is_floating_point()) return std::nullopt;
  for (const std::string_view name : e.semantics->operands) {
    const Tensor given = operand(c, op, name);
    const auto shaped = given.defined() ? broadcast(given, e.output.sizes()) : std::optional(given);
    if (!shaped || (!given.defined() && name == e.semantics->argument)) return std::nullopt;
    e.operands.push_back(*shaped);
  }
  e.born = born_in(e.output, e.operands);
  return e;
}

std::optional<Elements> over_zero(const Case& c) {
  auto e = elements_of(c, c.op_index());
  if (!e || e->semantics->pole_kind != Pole::quotient || count_true(e->born) == 0) return std::nullopt;
  if (count_true(at::logical_and(e->born, at::logical_not(e->at_pole()))) > 0) return std::nullopt;
  return e;
}

std::optional<std::int64_t> zero_over_zero(const Elements& e) {
  const OpSemantics& s = *e.semantics;
  const bool fraction = s.operands.size() > 1 && s.op != "pow";
  if (!fraction) return std::nullopt;
  const at::Tensor& numerator = e.operands[s.op == "addcdiv" ? 1 : 0];
  return count_true(at::logical_and(e.born, numerator == 0));
}

}  // namespace nanquest
