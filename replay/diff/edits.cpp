#include "replay/diff/edits.h"

#include <ATen/ATen.h>

#include "replay/lab/call_again.h"

namespace nanquest::diff {

c10::IValue copied(const c10::IValue& value) {
  // A number that is a tensor keeps its flag, which a copy loses.
  if (value.isTensor() && value.toTensor().defined() &&
      value.toTensor().unsafeGetTensorImpl()->is_wrapped_number()) {
    at::Tensor number = value.toTensor().clone();
    number.unsafeGetTensorImpl()->set_wrapped_number(true);
    return number;
  }
  return copy_of(value);
}

RunOptions Edits::options() const {
  RunOptions options;
  options.precision = precision_;
  options.scan = false;
  for (const auto& [op, arguments] : arguments_)
    options.edit.op_edit[op] = [arguments = arguments](std::vector<c10::IValue>& stack) {
      for (const auto& [position, value] : arguments)
        if (static_cast<std::size_t>(position) < stack.size())
          stack[static_cast<std::size_t>(position)] = copied(value);
      return false;
    };
  for (auto at = shown_.begin(); at != shown_.end(); at = shown_.upper_bound(at->first)) {
    std::vector<Shown> all;
    for (auto [one, end] = shown_.equal_range(at->first); one != end; ++one) all.push_back(one->second);
    options.edit.output_edit[at->first] = [all = std::move(all)](std::vector<at::Tensor>& written) {
      for (const Shown& shown : all) {
        if (shown.entry >= written.size()) continue;
        const at::Tensor& t = written[shown.entry];
        if (t.defined() && t.scalar_type() == shown.value.scalar_type())
          t.as_strided(shown.row.sizes, shown.row.strides, shown.row.storage_offset).copy_(shown.value);
      }
    };
  }
  for (const auto& [op, values] : written_)
    options.edit.output_edit[op] = [values = values](std::vector<at::Tensor>& written) {
      for (std::size_t i = 0; i < std::min(written.size(), values.size()); ++i)
        if (written[i].defined() && values[i].defined() && written[i].sizes() == values[i].sizes())
          written[i].copy_(values[i]);
    };
  for (const auto& [slot, shown] : outside_)
    options.edit.slot_edit[slot] = [shown = shown](at::Tensor& t) {
      t.as_strided(shown.row.sizes, shown.row.strides, shown.row.storage_offset).copy_(shown.value);
    };
  return options;
}

}  // namespace nanquest::diff
