#include "probe/attach/formats.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "probe/record/governor.h"
#include "probe/step/one_line.h"

namespace nanquest::attach {
namespace {

/// Memory that is left for everything else.
constexpr double kShare = 0.9;

bool is_narrow(const at::Tensor& t) {
  return t.defined() && (t.scalar_type() == at::kHalf || t.scalar_type() == at::kBFloat16);
}

void set_format(const at::Tensor& tensor, at::ScalarType type) {
  // A gradient is checked against its tensor when it is set: it is converted second, as in Module.to.
  at::Tensor gradient = tensor.is_leaf() ? tensor.grad() : at::Tensor();
  tensor.set_data(tensor.detach().to(type));
  if (gradient.defined() && gradient.scalar_type() != type) gradient.set_data(gradient.detach().to(type));
}

}  // namespace

Status can_widen(const std::vector<at::Tensor>& tensors) {
  std::unordered_map<const void*, const void*> holders;
  std::map<std::string, std::pair<at::Device, double>> more;
  for (const at::Tensor& t : tensors) {
    if (!is_narrow(t)) continue;
    const auto [holder, fresh] = holders.emplace(t.storage().unsafeGetStorageImpl(), t.unsafeGetTensorImpl());
    if (!fresh && holder->second != t.unsafeGetTensorImpl())
      return Error{ErrorCode::unsupported, "two of its weights or states share memory, and would no longer",
                   ""};
    // Twice as wide, and its gradient is converted too.
    double& needed = more.try_emplace(t.device().str(), t.device(), 0).first->second.second;
    needed += static_cast<double>(t.nbytes());
    if (t.is_leaf() && is_narrow(t.grad())) needed += static_cast<double>(t.grad().nbytes());
  }
  for (const auto& [name, needed] : more) {
    const auto free = static_cast<double>(free_memory(needed.first));
    if (free > 0 && needed.second > kShare * free)
      return Error{ErrorCode::unsupported,
                   "weights and moments in fp32 take " + amount(needed.second) + " more on " + name +
                       ", where " + amount(free) + " are free",
                   ""};
  }
  return {};
}

Status Widened::widen(const std::vector<at::Tensor>& tensors) {
  if (Status s = can_widen(tensors); !s) return s;
  const at::NoGradGuard no_grad;
  try {
    for (const at::Tensor& t : tensors) {
      if (!is_narrow(t)) continue;
      changed_.emplace_back(t, t.scalar_type());
      set_format(t, at::kFloat);
    }
  } catch (const std::exception& e) {
    take_back();
    return Error{ErrorCode::unsupported, one_line(e.what()), ""};
  }
  return {};
}

void Widened::take_back() {
  const at::NoGradGuard no_grad;
  for (const auto& [tensor, type] : changed_)
    if (tensor.scalar_type() != type) set_format(tensor, type);
  changed_.clear();
}

}  // namespace nanquest::attach
