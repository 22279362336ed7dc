#include "replay/case/origin.h"

#include <ATen/ATen.h>

#include <vector>

#include "probe/trace/op_numbers.h"
#include "replay/case/semantics.h"
#include "replay/case/values.h"

namespace nanquest {

namespace {

/// The tensor row that `op` reads as argument `name`, of the call in focus; kNone if there is none.
std::int32_t row_read(const Case& c, std::int32_t op, std::string_view name) {
  if (!c.row(op)) return kNone;
  const auto position = argument_position(*c.row(op), operand_name(*c.row(op), name));
  std::vector<std::int32_t> there;
  for (const Case::TensorArgument& a : c.tensor_arguments(op))
    if (position && static_cast<std::size_t>(a.position) == *position) there.push_back(a.tensor);
  if (there.empty()) return kNone;
  return there[c.focus() < there.size() ? c.focus() : 0];
}

/// The argument that an op of moves_elements passes on.
std::string_view moved_argument(const OpRow& op) {
  if (plain_name(op) == "copy") return "src";
  return argument_position(op, "self") ? "self" : "tensors";
}

/// Where the search through moving ops ends: the op that read the operand there, and the argument's name.
struct End {
  std::int32_t op;
  std::string_view name;
  std::int32_t maker;
  bool lifted = false;  ///< lift_fresh was one of these ops
};

End followed(const Case& c, std::int32_t op, std::string_view name) {
  End end{op, name, maker_of(c, op, name)};
  for (int hops = 0; hops < 16 && c.row(end.maker) && moves_elements(c.row(end.maker)->name); ++hops) {
    end.op = end.maker;
    end.lifted = end.lifted || c.is_one_of(end.op, {"lift_fresh"});
    end.name = moved_argument(*c.row(end.op));
    end.maker = maker_of(c, end.op, end.name);
  }
  return end;
}

}  // namespace

std::int32_t maker_of(const Case& c, std::int32_t op, std::string_view name) {
  const std::int32_t row = row_read(c, op, name);
  return row == kNone ? kNone : c.producer(row, op);
}

std::int32_t computed_by(const Case& c, std::int32_t op, std::string_view name) {
  return followed(c, op, name).maker;
}

bool is_number_of_program(const Case& c, std::int32_t op, std::string_view name) {
  return followed(c, op, name).lifted;
}

bool is_trained(const Case& c, std::int32_t op, std::string_view name) {
  const End end = followed(c, op, name);
  const std::int32_t row = row_read(c, end.op, end.name);
  if (end.maker != kNone || row == kNone || c.doc().tensors[row].slot == kNone) return false;
  const SlotOrigin origin = c.doc().slots[c.doc().tensors[row].slot].origin;
  return origin == SlotOrigin::parameter || origin == SlotOrigin::optimizer_state;
}

std::string maker_text(const Case& c, std::string_view what, std::int32_t maker) {
  if (!c.row(maker)) return "";
  std::string text = " ";
  if (c.row(maker)->flags & kOpHostWrite)
    return text.append(what).append(what == "They" ? " were" : " was").append(" written by the program.");
  text.append(what)
      .append(what == "They" ? " were made by " : " was made by ")
      .append(c.op_with_number(maker));
  return text.append(".");
}

std::optional<double> number_of(const Case& c, std::int32_t op, std::string_view name) {
  if (!c.row(op)) return std::nullopt;
  const auto position = argument_position(*c.row(op), operand_name(*c.row(op), name));
  return position ? number_at(c, op, *position) : std::nullopt;
}

std::optional<double> number_at(const Case& c, std::int32_t op, std::size_t position) {
  const std::vector<c10::IValue>& arguments = c.values(op).arguments;
  if (position >= arguments.size()) return std::nullopt;
  const at::Tensor t = operand_of(arguments[position]);
  if (!t.defined() || t.numel() != 1 || t.is_complex()) return std::nullopt;
  return wide(t).item<double>();
}

bool is_constant(const Case& c, std::int32_t op, std::string_view name) {
  if (!c.row(op)) return false;
  const c10::IValue given = argument(c, op, operand_name(*c.row(op), name));
  if (given.isScalar()) return true;
  const at::Tensor t = tensor_of(given);
  return t.defined() && t.dim() == 0 && (t.scalar_type() == at::kDouble || t.scalar_type() == at::kLong) &&
         maker_of(c, op, name) == kNone;
}

bool is_real_number(const Case& c, std::int32_t op, std::string_view name) {
  if (!c.row(op)) return false;
  const c10::IValue given = argument(c, op, operand_name(*c.row(op), name));
  if (given.isDouble()) return true;
  return given.isTensor() && given.toTensor().defined() && given.toTensor().is_floating_point();
}

bool is_zero_or_one(const at::Tensor& wide) {
  return at::logical_or(wide == 0, wide == 1).all().item<bool>();
}

}  // namespace nanquest
