#include "probe/trace/names.h"
#include "replay/case/case.h"
#include "replay/counterfactual/change.h"

namespace nanquest {
namespace {

Change precision_change(std::string text, ChangeSize size, Price price) {
  Change change;
  change.text = std::move(text);
  change.kind = ChangeKind::precision;
  change.size = size;
  change.price = price;
  return change;
}

}  // namespace

bool works_in_16_bits(const Case& c) {
  const OpRow* op = c.op();
  if (!op || op->written_count == 0) return false;
  const std::int32_t row = c.doc().written[static_cast<std::size_t>(op->first_written)];
  const DType type = row == kNone ? DType::uint8 : c.graph().tensor(TensorId{row}).dtype;
  return dtype_is_float(type) && dtype_size(type) <= 2;
}

Precision wider(const Case& c, bool narrow) {
  const bool enough = c.healthy(c.whole(Precision::fp32)) || !c.healthy(c.whole(Precision::fp64));
  return narrow && enough ? Precision::fp32 : Precision::fp64;
}

Change op_in(const Case& c, std::int32_t op, Precision precision) {
  Change change = precision_change(c.op_text(op) + " computed in " + precision_text(precision),
                                   ChangeSize::op, Price::protect_op);
  change.options.edit.op_precision[op] = precision;
  return change;
}

Change neighbours_in(const Case& c, std::int32_t op, Precision precision) {
  Change change = precision_change(
      c.op_text(op) + " and the ops that read its result, computed in " + precision_text(precision),
      ChangeSize::neighbours, Price::protect_op);
  change.options.edit.op_precision[op] = precision;
  for (std::int32_t reader : c.readers(op)) change.options.edit.op_precision[reader] = precision;
  return change;
}

Change ops_in(const Case& c, const std::string& text, const std::vector<std::int32_t>& ops,
              Precision precision) {
  Change change =
      precision_change(text + " computed in " + precision_text(precision), ChangeSize::op, Price::protect_op);
  for (const std::int32_t op : ops)
    if (c.row(op)) change.options.edit.op_precision[op] = precision;
  return change;
}

Change set_in(const Case& c, const std::vector<std::int32_t>& ops, Precision precision) {
  constexpr std::size_t kNamed = 6;
  std::string text = std::to_string(ops.size()) + " ops (";
  for (std::size_t i = 0; i < ops.size() && i < kNamed; ++i)
    text += (i ? ", " : "") + c.op_with_number(ops[i]);
  text += ops.size() > kNamed ? " and " + std::to_string(ops.size() - kNamed) + " more)" : ")";
  Change change = ops_in(c, text, ops, precision);
  change.size = ChangeSize::ops;
  return change;
}

Change module_in(const Case&, const std::string& path, Precision precision) {
  Change change = precision_change("module " + path + " computed in " + precision_text(precision),
                                   ChangeSize::module, Price::protect_op);
  change.options.edit.module_precision[path] = precision;
  return change;
}

Change step_in(const Case&, Precision precision) {
  Change change = precision_change("the whole step in " + precision_text(precision), ChangeSize::step,
                                   Price::other_format);
  change.options.precision = precision;
  return change;
}

namespace {

/// The narrowest format that the changed ops were recorded in, as people call it.
std::string narrow_format(const Case& c, const RunOptions& options) {
  const PerRow<OpRow, Precision> precision = precision_of_ops(c.graph(), options.precision, options.edit);
  std::optional<DType> found;
  for (const OpId op : c.graph().ops()) {
    if (precision[op] == Precision::as_recorded) continue;
    for (const TensorId row : c.graph().written(op)) {
      if (!row) continue;
      const DType type = c.graph().tensor(row).dtype;
      if (dtype_is_float(type) && (!found || dtype_size(type) < dtype_size(*found))) found = type;
    }
  }
  return found ? dtype_short(*found) : "the recorded formats";
}

std::string wide_format(const RunOptions& options) {
  if (options.precision != Precision::as_recorded) return precision_text(options.precision);
  if (!options.edit.op_precision.empty()) return precision_text(options.edit.op_precision.begin()->second);
  return precision_text(options.edit.module_precision.begin()->second);
}

}  // namespace

Change half_of(const Case& c, const Change& change, FormatHalf half) {
  Change part = change;
  part.options = with_half(c.graph(), change.options, half);
  part.text = change.text + ", but only with " +
              half_text(half, wide_format(change.options), narrow_format(c, change.options));
  return part;
}

std::optional<FormatHalf> half_that_helps(const Case& c) {
  const Precision wide = wider(c, works_in_16_bits(c));
  if (c.healthy(c.whole(Precision::as_recorded)) || !c.healthy(c.whole(wide))) return std::nullopt;
  const Change whole = step_in(c, wide);
  const auto helps = [&](FormatHalf half) { return run_change(c, half_of(c, whole, half)); };
  const TrialResult range = helps(FormatHalf::range), precision = helps(FormatHalf::precision);
  if (range == TrialResult::finite && precision == TrialResult::non_finite) return FormatHalf::range;
  if (precision == TrialResult::finite && range == TrialResult::non_finite) return FormatHalf::precision;
  return std::nullopt;
}

}  // namespace nanquest
