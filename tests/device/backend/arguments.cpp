#include "tests/device/backend/arguments.h"

#include <ATen/Functions.h>
#include <ATen/core/List.h>

#include <map>
#include <memory>

#include "tests/device/backend/launch.h"
#include "tests/device/backend/queue.h"

namespace nqdev {
namespace {

using c10::IValue;
constexpr c10::DeviceType kDevice = c10::DeviceType::PrivateUse1;

c10::Device device_number(int device) {
  return {kDevice, static_cast<c10::DeviceIndex>(device)};
}

/// The value with its tensors, and its devices if asked for, replaced.
IValue mapped(const IValue& value, const Converter& with) {
  if (value.isTensor()) return with.tensor(value.toTensor());
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& t : value.toTensorVector()) list.push_back(with.tensor(t));
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const IValue& element : value.toListRef())
      list.push_back(element.isNone() ? std::optional<at::Tensor>() : with.tensor(element.toTensor()));
    return list;
  }
  if (value.isDevice() && value.toDevice().type() == kDevice) return with.device;
  return value;
}

void keep_flags(const at::Tensor& from, const at::Tensor& to) {
  if (from.is_conj()) to._set_conj(true);
  if (from.is_neg()) to._set_neg(true);
  if (from.unsafeGetTensorImpl()->is_wrapped_number()) to.unsafeGetTensorImpl()->set_wrapped_number(true);
}

/// The same replacement for the same tensor.
Converter remembering(const std::function<at::Tensor(const at::Tensor&)>& make, c10::Device device) {
  auto known = std::make_shared<std::map<const c10::TensorImpl*, at::Tensor>>();
  return {[=](const at::Tensor& t) {
            if (!t.defined()) return t;
            at::Tensor& made = (*known)[t.unsafeGetTensorImpl()];
            if (!made.defined()) made = make(t);
            return made;
          },
          device};
}

bool is_written(const c10::Argument& argument) {
  return argument.alias_info() && argument.alias_info()->isWrite();
}

}  // namespace

void each_tensor_in(const IValue& value, const std::function<void(const at::Tensor&)>& f) {
  if (value.isTensor()) return f(value.toTensor());
  if (!value.isTensorList() && !value.isOptionalTensorList()) return;
  for (const IValue& element : value.toListRef())
    if (element.isTensor()) f(element.toTensor());
}

Converter Converter::to_meta() {
  return remembering(
      [](const at::Tensor& t) {
        if (!is_ours(t) && t.dim() == 0) return t;
        const at::Tensor meta = at::empty_strided(t.sizes(), t.strides(), t.options().device(at::kMeta));
        keep_flags(t, meta);
        return meta;
      },
      c10::Device(at::kMeta));
}

Converter Converter::to_views() {
  return remembering(
      [](const at::Tensor& t) {
        if (is_ours(t)) return cpu_view(t);
        const at::Tensor copy = t.detach().clone();
        if (t.unsafeGetTensorImpl()->is_wrapped_number()) keep_flags(t, copy);
        return copy;
      },
      c10::Device(at::kCPU));
}

Converter Converter::to_copies() {
  return remembering(
      [](const at::Tensor& t) {
        if (!is_ours(t)) return t;
        const at::Tensor copy = cpu_view(t).clone();
        if (t.unsafeGetTensorImpl()->is_wrapped_number()) keep_flags(t, copy);
        return copy;
      },
      c10::Device(at::kCPU));
}

std::vector<IValue> converted(const std::vector<IValue>& values, const Converter& with) {
  std::vector<IValue> made;
  made.reserve(values.size());
  for (const IValue& value : values) made.push_back(mapped(value, with));
  return made;
}

bool all_meta(const IValue& value) {
  bool all = true;
  each_tensor_in(value, [&](const at::Tensor& t) { all = all && (!t.defined() || t.is_meta()); });
  return all;
}

IValue like_meta(const IValue& value, int device) {
  const auto make = [&](const at::Tensor& t) {
    return t.defined() ? at::empty_strided(t.sizes(), t.strides(), t.options().device(device_number(device)))
                       : t;
  };
  return mapped(value, {make, device_number(device)});
}

IValue to_device(const IValue& value, int device) {
  const auto make = [&](const at::Tensor& t) {
    if (!t.defined()) return t;
    const at::Tensor made =
        at::empty_strided(t.sizes(), t.strides(), t.options().device(device_number(device)));
    as_the_device([&] { cpu_view(made).copy_(t); });
    return made;
  };
  return mapped(value, {make, device_number(device)});
}

void copy_into(const IValue& target, const IValue& value) {
  std::vector<at::Tensor> to, from;
  each_tensor_in(target, [&](const at::Tensor& t) { to.push_back(t); });
  each_tensor_in(value, [&](const at::Tensor& t) { from.push_back(t); });
  for (std::size_t i = 0; i < to.size() && i < from.size(); ++i) {
    if (!to[i].defined() || !from[i].defined()) continue;
    TORCH_CHECK(to[i].sizes() == from[i].sizes() && to[i].scalar_type() == from[i].scalar_type(),
                "nqdev: a kernel made another shape than its meta kernel");
    to[i].copy_(from[i]);
  }
}

void write_back(const c10::FunctionSchema& schema, const std::vector<IValue>& copies,
                const std::vector<IValue>& arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!is_written(schema.arguments()[i])) continue;
    std::vector<at::Tensor> to, from;
    each_tensor_in(arguments[i], [&](const at::Tensor& t) { to.push_back(t); });
    each_tensor_in(copies[i], [&](const at::Tensor& t) { from.push_back(t); });
    for (std::size_t k = 0; k < to.size(); ++k) {
      if (!is_ours(to[k])) continue;
      if (to[k].sizes() != from[k].sizes()) to[k].resize_(from[k].sizes());
      // In the stream's order: resizing has put a copy there.
      const int device = to[k].device().index();
      enqueue(device, current_stream(device),
              [view = cpu_view(to[k]), values = from[k]] { as_the_device([&] { view.copy_(values); }); });
    }
  }
}

std::optional<int> device_in(const IValue& value) {
  std::optional<int> found;
  if (value.isDevice() && value.toDevice().type() == kDevice && value.toDevice().has_index())
    return value.toDevice().index();
  each_tensor_in(value, [&](const at::Tensor& t) {
    if (!found && is_ours(t)) found = t.device().index();
  });
  return found;
}

bool is_generator(const c10::Argument& argument) {
  const auto& type = *argument.type();
  if (type.kind() == c10::TypeKind::GeneratorType) return true;
  const auto* optional = type.castRaw<c10::OptionalType>();
  return optional && optional->getElementType()->kind() == c10::TypeKind::GeneratorType;
}

}  // namespace nqdev
