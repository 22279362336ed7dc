#include "replay/report/repro_memory.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <iterator>

#include "probe/tensor/each_tensor.h"
#include "probe/tensor/tensor_scan.h"
#include "replay/report/repro_tensors.h"

namespace nanquest {

SharedMemories shared_memory(const std::vector<c10::IValue>& arguments, const std::vector<bool>& written) {
  struct Use {
    std::vector<at::Tensor> views;
    bool written = false;
  };
  std::map<const void*, Use> uses;
  for (std::size_t i = 0; i < arguments.size(); ++i)
    each_tensor(arguments[i], [&](const at::Tensor& t) {
      if (!t.defined() || t.numel() == 0) return;
      Use& use = uses[t.storage().unsafeGetStorageImpl()];
      use.views.push_back(without_flags(t));
      use.written = use.written || written[i];
    });
  SharedMemories shared;
  for (const auto& [storage, use] : uses) {
    if (!use.written || use.views.size() < 2) continue;
    std::int64_t begin = INT64_MAX, end = 0;
    for (const at::Tensor& t : use.views) {
      const auto size = static_cast<std::int64_t>(t.element_size());
      std::int64_t last = t.storage_offset();
      for (std::int64_t d = 0; d < t.dim(); ++d) last += (t.size(d) - 1) * t.stride(d);
      begin = std::min(begin, t.storage_offset() * size / 16 * 16);  // no element is larger
      end = std::max(end, (last + 1) * size);
    }
    const at::Tensor& first = use.views.front();
    const auto size = static_cast<std::int64_t>(first.element_size());
    at::Tensor elements = at::empty({0}, first.options());
    elements.set_(first.storage(), begin / size, {(end - begin + size - 1) / size}, {1});
    shared[storage] = {"memory" + std::to_string(shared.size()), elements, begin};
  }
  return shared;
}

namespace {

class Copier {
 public:
  c10::IValue operator()(const c10::IValue& value) {
    if (value.isTensor()) return copy(value.toTensor());
    if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& t : value.toTensorVector()) list.push_back(copy(t));
      return list;
    }
    if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> list;
      for (const auto& t : value.toOptionalTensorVector()) list.push_back(t ? std::optional(copy(*t)) : t);
      return list;
    }
    return value;
  }

 private:
  at::Tensor copy(const at::Tensor& t) {
    if (!t.defined()) return t;
    at::Tensor& memory = memory_[t.storage().unsafeGetStorageImpl()];
    if (!memory.defined()) memory = copy_storage(t.storage(), at::kByte);
    at::Tensor made = at::empty({0}, at::device(at::kCPU).dtype(t.scalar_type()));
    made.set_(memory.storage(), t.storage_offset(), t.sizes(), t.strides());
    made._set_conj(t.is_conj());
    made._set_neg(t.is_neg());
    if (t.unsafeGetTensorImpl()->is_wrapped_number()) made.unsafeGetTensorImpl()->set_wrapped_number(true);
    return made;
  }
  std::map<const void*, at::Tensor> memory_;
};

}  // namespace

std::vector<c10::IValue> copies_of(const std::vector<c10::IValue>& arguments) {
  std::vector<c10::IValue> copies;
  std::transform(arguments.begin(), arguments.end(), std::back_inserter(copies), Copier());
  return copies;
}

}  // namespace nanquest
