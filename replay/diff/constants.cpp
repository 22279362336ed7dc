#include "replay/diff/constants.h"

#include <ATen/ATen.h>
#include <ATen/ScalarOps.h>

#include <array>
#include <cstdio>
#include <sstream>

#include "replay/trace/replayer_state.h"

namespace nanquest::diff {
namespace {

/// Arguments that say where and how memory lies.
bool is_about_memory(const std::string& name) {
  static constexpr std::array<std::string_view, 8> kNames = {"device",        "layout",    "pin_memory",
                                                             "memory_format", "generator", "non_blocking",
                                                             "requires_grad", "implicit"};
  for (const std::string_view other : kNames)
    if (name == other) return true;
  return false;
}

std::string number_text(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.6g", value);
  return text.data();
}

std::string text_of(const c10::IValue& value) {
  if (value.isNone()) return "none";
  if (value.isScalar() && value.toScalar().isFloatingPoint()) return number_text(value.toScalar().toDouble());
  std::ostringstream text;
  text << value;
  return text.str();
}

/// A number that is an argument as a tensor; undefined if the row is none.
at::Tensor wrapped_number(const Replayer& replayer, TensorId row) {
  const TensorRow* found = find_row(replayer.doc(), row);
  if (!found || (found->flags & kTensorWrappedNumber) == 0) return {};
  const Slot* slot = find_row(replayer.doc(), SlotId{found->slot});
  if (!slot || slot->data.empty()) return {};
  const auto stored = replayer.tensor(slot->data);
  if (!stored || stored->numel() == 0) return {};
  at::Tensor number = stored->flatten()[0].clone();
  number.unsafeGetTensorImpl()->set_wrapped_number(true);
  return number;
}

}  // namespace

std::vector<Constant> constants_of(const Replayer& replayer, OpId op) {
  std::vector<Constant> constants;
  const trace::OpPlan& plan = replayer.impl().plan().ops[op];
  if (!plan.handle || plan.view_only) return constants;
  const auto& declared = plan.handle->schema().arguments();
  for (std::size_t i = 0; i < plan.args.size() && i < declared.size(); ++i) {
    const trace::ArgPlan& arg = plan.args[i];
    const std::string& name = declared[i].name();
    const bool is_constant =
        arg.kind == trace::ArgPlan::Kind::constant || arg.kind == trace::ArgPlan::Kind::half_to_float;
    if (is_constant && !is_about_memory(name) && !arg.constant.isTensor())
      constants.push_back({static_cast<int>(i), name, text_of(arg.constant), arg.constant});
    if (arg.kind == trace::ArgPlan::Kind::tensor && arg.rows.size() == 1)
      if (const at::Tensor number = wrapped_number(replayer, arg.rows[0]); number.defined())
        constants.push_back(
            {static_cast<int>(i), name, number_text(number.to(at::kDouble).item<double>()), number});
  }
  return constants;
}

}  // namespace nanquest::diff
