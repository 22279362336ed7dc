#include "probe/tensor/hidden_overflow.h"

#include <ATen/ATen.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "probe/tensor/each_tensor.h"
#include "probe/tensor/tensor_scan.h"

namespace nanquest {
namespace {

/// If more memory than this were needed, values are not followed: the step itself needs the memory.
constexpr std::uint64_t kMaxBytes = std::uint64_t{512} << 20;

/// Values below this are negligible in their format: fp16 relies on its subnormal numbers, wider formats do
/// not.
double smallest_that_counts(at::ScalarType type) {
  switch (type) {
    case at::kHalf:
      return 5.9604644775390625e-8;  // 2^-24
    case at::kDouble:
      return std::numeric_limits<double>::min();
    default:
      return std::numeric_limits<float>::min();
  }
}

/// Relative distance of neighbouring numbers, times a few: the two computations round alike.
double allowed_difference(at::ScalarType type) {
  switch (type) {
    case at::kHalf:
      return 4 * 9.765625e-4;  // 2^-10
    case at::kBFloat16:
      return 4 * 7.8125e-3;  // 2^-7
    case at::kDouble:
      return 4 * std::numeric_limits<double>::epsilon();
    default:
      return 4 * static_cast<double>(std::numeric_limits<float>::epsilon());
  }
}

/// Elements in which two fp64 results differ after rounding to `type`.
at::Tensor differ(const at::Tensor& a, const at::Tensor& b, at::ScalarType type) {
  const at::Tensor x = a.to(type).to(at::kDouble), y = b.to(type).to(at::kDouble);
  const at::Tensor alike = at::logical_or(at::eq(x, y), at::logical_and(at::isnan(x), at::isnan(y)));
  const at::Tensor near =
      at::le((x - y).abs(),
             at::maximum(x.abs(), y.abs()).mul(allowed_difference(type)).add(smallest_that_counts(type)));
  return at::logical_not(at::logical_or(alike, near));
}

/// A view of a flat storage with the layout that `like` has in its own storage.
at::Tensor view_like(const at::Tensor& flat, const at::Tensor& like) {
  return flat.as_strided(like.sizes(), like.strides(), like.storage_offset());
}

/// True if its results are views of memory that it was given.
bool only_views(const c10::OperatorHandle& op, const std::vector<bool>& argument_written) {
  const auto& returns = op.schema().returns();
  return std::none_of(argument_written.begin(), argument_written.end(),
                      [](bool written) { return written; }) &&
         std::all_of(returns.begin(), returns.end(), [](const c10::Argument& r) { return r.alias_info(); });
}

/// Followed values may be read on another stream of the device, which does not wait for this one.
void wait_for_work_on(const OpResults& made) {
  std::vector<at::Device> devices;
  for (const auto* tensors : {&made.returned, &made.written})
    for (const at::Tensor& t : *tensors)
      if (t.defined() && !t.is_cpu() && std::find(devices.begin(), devices.end(), t.device()) == devices.end())
        devices.push_back(t.device());
  for (const at::Device& device : devices) {
    const c10::impl::VirtualGuardImpl guard(device.type());
    guard.synchronizeStream(guard.getStream(device));
  }
}

/// A program that replaces infinities expects them: the largest number in their place is intended. A zero in
/// place of a NaN that two of them made can't be intended.
bool replaces_infinities(const c10::OperatorHandle& op) {
  const std::string& name = op.schema().name();
  return name == "aten::nan_to_num" || name == "aten::nan_to_num_";
}

}  // namespace

struct HiddenOverflows::Followed {
  c10::weak_intrusive_ptr<c10::StorageImpl> storage;  ///< keeps the address unique
  at::ScalarType type;
  at::Tensor belongs;  ///< fp64, 1-D over the whole storage; correct values replace bad ones
  Ops causes;
};

struct HiddenOverflows::Reader {
  const c10::OperatorHandle* op = nullptr;
  std::vector<bool> argument_written;
  bool can_repeat = false;
  std::vector<c10::IValue> as_is, as_belongs;  ///< fp64 arguments
  Ops causes;
};

void HiddenOverflows::DeleteReader::operator()(Reader* reader) const {
  delete reader;
}

HiddenOverflows::HiddenOverflows() = default;
HiddenOverflows::~HiddenOverflows() = default;

HiddenOverflows::Followed* HiddenOverflows::of(const at::Tensor& tensor) {
  if (followed_.empty() || !tensor.defined() || !is_plain(tensor)) return nullptr;
  const auto found = followed_.find(tensor.storage().unsafeGetStorageImpl());
  if (found == followed_.end() || found->second.storage.expired()) return nullptr;
  return &found->second;
}

void HiddenOverflows::lose(const Ops& causes) {
  lost_.insert(causes.begin(), causes.end());
}

void HiddenOverflows::forget_freed() {
  std::erase_if(followed_, [&](const auto& entry) {
    if (!entry.second.storage.expired()) return false;
    bytes_ -= entry.second.belongs.nbytes();
    return true;
  });
}

void HiddenOverflows::follow(const at::Tensor& real, const at::Tensor& belongs, const Ops& causes) {
  Followed* known = of(real);
  if (known && known->type != real.scalar_type()) {
    lose(known->causes);
    lose(causes);
    return;
  }
  const auto count = static_cast<std::int64_t>(real.storage().nbytes() / real.element_size());
  if (!known) {
    forget_freed();
    if (bytes_ + static_cast<std::uint64_t>(count) * 8 > kMaxBytes) return lose(causes);
    const at::Tensor whole = at::empty({0}, real.options()).set_(real.storage(), 0, {count}, {1});
    Followed fresh{c10::weak_intrusive_ptr<c10::StorageImpl>(real.storage().getWeakStorageImpl()),
                   real.scalar_type(), whole.to(at::kDouble), causes};
    bytes_ += fresh.belongs.nbytes();
    known =
        &followed_.insert_or_assign(real.storage().unsafeGetStorageImpl(), std::move(fresh)).first->second;
  }
  known->causes.insert(causes.begin(), causes.end());
  view_like(known->belongs, real).copy_(at::where(at::isfinite(real), real.to(at::kDouble), belongs));
}

void HiddenOverflows::begins(std::int32_t op, const OpResults& made, const OpResults& above) {
  begun_.insert(op);
  const auto each = [&](const std::vector<at::Tensor>& real, const std::vector<at::Tensor>& up) {
    for (std::size_t i = 0; i < std::min(real.size(), up.size()); ++i) {
      if (!real[i].defined() || !is_plain(real[i]) || !real[i].is_floating_point()) continue;
      if (!up[i].defined() || up[i].sizes() != real[i].sizes()) continue;
      if (at::isfinite(real[i]).all().item<bool>()) continue;
      follow(real[i], up[i].to(at::kDouble), {op});
    }
  };
  try {
    each(made.returned, above.returned);
    each(made.written, above.written);
    wait_for_work_on(made);
  } catch (...) {  // out of memory: it is no longer followed
    lost_.insert(op);
  }
}

HiddenOverflows::ReaderPtr HiddenOverflows::reads(const c10::OperatorHandle& op,
                                                  const std::vector<bool>& argument_written, bool can_repeat,
                                                  const std::vector<c10::IValue>& inputs) {
  if (followed_.empty() || only_views(op, argument_written)) return nullptr;
  Ops causes;
  for (const c10::IValue& input : inputs)
    each_tensor(input, [&](const at::Tensor& t) {
      if (const Followed* known = of(t)) causes.insert(known->causes.begin(), known->causes.end());
    });
  if (causes.empty()) return nullptr;
  ReaderPtr reader(new Reader{&op, argument_written, can_repeat, {}, {}, causes});
  const auto instead = [&](const at::Tensor& t) {
    const Followed* known = of(t);
    if (!known) return at::Tensor();
    if (known->type != t.scalar_type()) throw std::runtime_error("another element type");
    return view_like(known->belongs, t);
  };
  try {
    if (can_repeat) {
      reader->as_is = raised(op.schema(), argument_written, inputs, at::kDouble);
      reader->as_belongs = raised(op.schema(), argument_written, inputs, at::kDouble, instead);
    }
  } catch (...) {
    reader->can_repeat = false;
  }
  return reader;
}

void HiddenOverflows::compare(const at::Tensor& real, const at::Tensor& with_infinities,
                              const at::Tensor& belongs, const Ops& causes) {
  // A bool or integer result (isinf) is the program's own check; the ops that read it are compared instead.
  if (!real.defined() || !is_plain(real) || !real.is_floating_point()) return;
  const at::Tensor bad = at::logical_not(at::isfinite(real));
  const at::Tensor changed = differ(with_infinities, belongs, real.scalar_type());
  if (at::logical_and(changed, at::logical_not(bad)).any().item<bool>())
    harmful_.insert(causes.begin(), causes.end());
  const bool goes_on = at::logical_and(bad, at::isfinite(belongs)).any().item<bool>();
  if (goes_on)
    follow(real, belongs, causes);
  else if (Followed* known = of(real))  // overwritten with correct values
    view_like(known->belongs, real).copy_(real);
}

void HiddenOverflows::replaced(const Reader& reader, const OpResults& made) {
  const std::vector<at::Tensor>& results = made.returned.empty() ? made.written : made.returned;
  if (!reader.can_repeat || results.empty() || !reader.as_is[0].isTensor()) return;
  const at::Tensor &was = reader.as_is[0].toTensor(), &belongs = reader.as_belongs[0].toTensor();
  const at::Tensor& real = made.written.empty() ? results.front() : made.written.front();
  if (!real.defined() || real.sizes() != was.sizes()) return;
  try {
    const at::Tensor lost = at::logical_and(at::isnan(was), at::isfinite(belongs));
    const at::Tensor changed = differ(real.to(at::kDouble), belongs, real.scalar_type());
    if (at::logical_and(lost, changed).any().item<bool>())
      harmful_.insert(reader.causes.begin(), reader.causes.end());
  } catch (...) {
    lose(reader.causes);
  }
}

void HiddenOverflows::after(ReaderPtr reader, const OpResults& made) {
  if (!reader) {
    if (followed_.empty()) return;
    for (const auto* tensors : {&made.returned, &made.written})
      for (const at::Tensor& t : *tensors)
        if (Followed* known = of(t)) {
          if (known->type == t.scalar_type())
            view_like(known->belongs, t).copy_(t);
          else
            lose(known->causes);
        }
    return;
  }
  if (replaces_infinities(*reader->op)) return replaced(*reader, made);
  if (!reader->can_repeat) return lose(reader->causes);
  const auto as_is = run_raised(*reader->op, reader->argument_written, std::move(reader->as_is));
  const auto belongs = run_raised(*reader->op, reader->argument_written, std::move(reader->as_belongs));
  if (!as_is || !belongs) return lose(reader->causes);
  const auto each = [&](const std::vector<at::Tensor>& real, const std::vector<at::Tensor>& a,
                        const std::vector<at::Tensor>& b) {
    if (a.size() != real.size() || b.size() != real.size()) return lose(reader->causes);
    for (std::size_t i = 0; i < real.size(); ++i) {
      if (!real[i].defined()) continue;
      if (a[i].sizes() != real[i].sizes() || b[i].sizes() != real[i].sizes()) return lose(reader->causes);
      compare(real[i], a[i], b[i], reader->causes);
    }
  };
  try {
    each(made.returned, as_is->returned, belongs->returned);
    each(made.written, as_is->written, belongs->written);
    wait_for_work_on(made);
  } catch (...) {
    lose(reader->causes);
  }
}

HiddenOverflows::Ops HiddenOverflows::harmless() const {
  Ops open = lost_;
  for (const auto& [address, known] : followed_) {
    // The effect of infinities that are still in memory is not known yet.
    const auto storage = known.storage.lock();
    if (!storage) continue;
    const auto count = static_cast<std::int64_t>(storage->nbytes() / c10::elementSize(known.type));
    const at::Tensor now = at::empty({0}, at::TensorOptions(known.type).device(storage->device()))
                               .set_(c10::Storage(storage), 0, {count}, {1});
    if (!at::isfinite(now).all().item<bool>()) open.insert(known.causes.begin(), known.causes.end());
  }
  Ops rest;
  for (const std::int32_t op : begun_)
    if (!harmful_.count(op) && !open.count(op)) rest.insert(op);
  return rest;
}

}  // namespace nanquest
