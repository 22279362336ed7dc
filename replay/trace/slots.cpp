#include "replay/trace/slots.h"

#include <ATen/Functions.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/TensorImpl.h>

#include <algorithm>
#include <stdexcept>

#include "probe/tensor/tensor_scan.h"
#include "replay/trace/dtype_map.h"

namespace nanquest::trace {
namespace {

/// A tensor over `storage`, made without the dispatcher.
at::Tensor make_view(const c10::Storage& storage, at::ScalarType type, c10::IntArrayRef sizes,
                     c10::IntArrayRef strides, std::int64_t offset) {
  if (!storage.device().is_cpu())
    return at::empty({0}, at::device(storage.device()).dtype(type)).set_(storage, offset, sizes, strides);
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(storage), c10::DispatchKeySet(c10::DispatchKey::CPU), c10::scalarTypeToTypeMeta(type));
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides, offset);
  return tensor;
}

c10::Storage new_storage(std::int64_t bytes, c10::Device device) {
  if (!device.is_cpu()) return at::empty({bytes}, at::device(device).dtype(at::kByte)).storage();
  return c10::Storage(c10::Storage::use_byte_size_t(), bytes, c10::GetCPUAllocator(), /*resizable=*/true);
}

std::string slot_name(const SnapshotDoc& doc, SlotId slot) {
  const std::string& name = get(doc, slot).name;
  return "slot " + std::to_string(slot.row()) + (name.empty() ? "" : " (" + name + ")");
}

}  // namespace

std::int64_t extent_bytes(const TensorRow& row, std::size_t element_size) {
  const auto span = span_of(row);
  const bool backwards =
      std::any_of(row.strides.begin(), row.strides.end(), [](std::int64_t s) { return s < 0; });
  if (!span || backwards) throw std::runtime_error("a tensor row has an impossible size, stride or offset");
  return span->begin == span->end ? 0 : span->end * static_cast<std::int64_t>(element_size);
}

SlotStore::SlotStore(const SnapshotDoc& doc, const TracePlan& plan, DataSource source, Precision outside,
                     c10::Device device)
    : doc_(doc),
      plan_(plan),
      source_(std::move(source)),
      outside_(outside),
      device_(device),
      states_(doc.slots.size()) {}

c10::Device SlotStore::device_of(SlotId slot) const {
  return get(doc_, slot).device == "cpu" ? c10::Device(c10::kCPU) : device_;
}

SlotStore SlotStore::fork() {
  for (const SlotId slot : ids_of<Slot>(doc_))
    states_[slot].shared = states_[slot].shared || states_[slot].storage;
  SlotStore copy(*this);
  copy.edits_ = nullptr;
  return copy;
}

void SlotStore::own(TensorId id) {
  State& s = states_[slot_of(id)];
  if (!s.storage || !s.shared) return;
  s.storage = flat(s, at::kByte).clone().storage();
  s.shared = false;
}

std::uint64_t SlotStore::bytes() const {
  std::uint64_t sum = 0;
  for (const SlotId slot : ids_of<Slot>(doc_))
    if (states_[slot].storage) sum += states_[slot].storage.nbytes();
  return sum;
}

SlotId SlotStore::slot_of(TensorId id) const {
  const SlotId slot{row(id).slot};
  if (!states_.holds(slot)) throw std::runtime_error("a tensor row names a slot outside the slot table");
  if (row(id).flags & kTensorOpaque)
    throw std::runtime_error(slot_name(doc_, slot) + " is not strided memory");
  return slot;
}

bool SlotStore::available(TensorId id) const {
  const SlotId slot = slot_of(id);
  const Slot& facts = get(doc_, slot);
  return states_[slot].storage ||
         (!states_[slot].gone &&
          (!facts.data.empty() || (facts.origin != SlotOrigin::produced && facts.bytes == 0)));
}

SlotStore::State& SlotStore::state(TensorId id) {
  const SlotId slot = slot_of(id);
  if (!states_[slot].storage) load(slot);
  return states_[slot];
}

at::Tensor SlotStore::flat(const State& s, at::ScalarType type) const {
  const auto n = static_cast<std::int64_t>(s.storage.nbytes() / c10::elementSize(type));
  return make_view(s.storage, type, {n}, {1}, 0);
}

void SlotStore::load(SlotId slot) {
  State& s = states_[slot];
  const Slot& facts = get(doc_, slot);
  if (facts.bytes == 0 && !s.gone) {  // an empty tensor has no bytes to store
    s.storage = new_storage(0, device_of(slot));
    s.type = plan_.slots[slot].type;
    return;
  }
  if (s.gone || facts.data.empty())
    throw std::runtime_error(slot_name(doc_, slot) +
                             " was never produced (the op that makes it failed or is missing)");
  const at::Tensor stored = source_(facts.data);
  const SlotPlan& plan = plan_.slots[slot];
  s.type = plan.type;
  s.storage = stored.storage();
  const auto edit = edits_ ? edits_->find(slot.row()) : decltype(edits_->end()){};
  const bool edited = edits_ && edit != edits_->end();
  const bool copied = edited || plan.changes || stored.storage_offset() != 0;
  s.shared = !copied;
  if (copied) s.storage = stored.contiguous().flatten().clone().storage();
  if (edited) {
    at::Tensor whole = flat(s, scalar_type_of(facts.dtype));
    edit->second(whole);
  }
  if (const c10::Device device = device_of(slot); !device.is_cpu()) {
    s.storage = flat(s, at::kByte).to(device).storage();
    s.shared = false;
  }
  const at::ScalarType want = kept_type(slot);
  if (want != plan.type) {
    s.storage = flat(s, plan.type).to(want).storage();
    s.type = want;
    s.shared = false;
  }
}

at::ScalarType SlotStore::kept_type(SlotId slot) const {
  const SlotPlan& plan = plan_.slots[slot];
  if (plan.mixed) return plan.type;
  // Only formats that exist as complex numbers too: the same memory must serve both.
  return plan.paired ? part_type(target_type(complex_of(plan.type), outside_))
                     : target_type(plan.type, outside_);
}

at::ScalarType SlotStore::row_type(SlotId slot, TensorId id, at::ScalarType kept) const {
  const at::ScalarType recorded = scalar_type_of(row(id).dtype);
  if (plan_.slots[slot].mixed) return recorded;
  return plan_.slots[slot].paired && c10::isComplexType(recorded) ? complex_of(kept) : kept;
}

at::ScalarType SlotStore::type(TensorId id) {
  const State& s = state(id);
  return row_type(slot_of(id), id, s.type);
}

at::Tensor SlotStore::view(TensorId id) {
  const TensorRow& r = row(id);
  const at::ScalarType now = type(id);
  const State& s = states_[slot_of(id)];
  if (s.resized) return flat(s, now);
  if (extent_bytes(r, c10::elementSize(now)) > static_cast<std::int64_t>(s.storage.nbytes()))
    throw std::runtime_error("a tensor row reaches beyond the end of " + slot_name(doc_, slot_of(id)));
  at::Tensor tensor = make_view(s.storage, now, r.sizes, r.strides, r.storage_offset);
  if (r.flags & kTensorConj) tensor = at::_conj(tensor);
  if (r.flags & kTensorNeg) tensor = at::_neg_view(tensor);
  if (r.flags & kTensorWrappedNumber) tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

at::Tensor SlotStore::read(TensorId id, at::ScalarType want) {
  at::Tensor tensor = view(id);
  if (tensor.scalar_type() == want) return tensor;
  tensor = tensor.to(want);
  if (row(id).flags & kTensorWrappedNumber) tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

void SlotStore::widen(TensorId id, at::ScalarType want) {
  State& s = state(id);
  const SlotPlan& plan = plan_.slots[slot_of(id)];
  if (plan.mixed) return;
  const at::ScalarType wide = wider_type(s.type, plan.paired ? part_type(want) : want);
  if (wide == s.type) return;
  s.storage = flat(s, s.type).to(wide).storage();
  s.type = wide;
  s.shared = false;
}

std::int64_t SlotStore::elements(SlotId slot, const TensorRow& r) const {
  const std::size_t size = dtype_size(r.dtype);
  if (get(doc_, slot).bytes > (std::uint64_t{1} << 48))
    throw std::runtime_error(slot_name(doc_, slot) + " has an impossible size");
  const auto stated = static_cast<std::int64_t>(get(doc_, slot).bytes / size);
  return std::max(stated, extent_bytes(r, size) / static_cast<std::int64_t>(size));
}

void SlotStore::bind(TensorId id, const at::Tensor& tensor) {
  const SlotId slot = slot_of(id);
  const TensorRow& r = row(id);
  State& s = states_[slot];
  if (s.storage) {
    if (!holds(id, tensor)) store(id, tensor);
    return;
  }
  if (tensor.layout() != at::kStrided)
    throw std::runtime_error("it returned a tensor that is not strided memory");
  if (tensor.sizes() != c10::IntArrayRef(r.sizes)) {
    if (!plan_.slots[slot].scratch || tensor.dim() != 1 || r.sizes.size() != 1)
      throw std::runtime_error("it returned another shape than when it was recorded");
    s.storage = tensor.contiguous().storage();
    s.type = tensor.scalar_type();
    s.resized = true;
    return;
  }
  const at::ScalarType recorded = scalar_type_of(r.dtype);
  const bool mixed = plan_.slots[slot].mixed;
  const at::ScalarType got = tensor.scalar_type();
  const bool floats =
      (is_float(got) && is_float(recorded)) || (c10::isComplexType(got) && c10::isComplexType(recorded));
  const bool paired = plan_.slots[slot].paired;
  s.type = floats && !mixed ? got : recorded;
  if (paired) s.type = part_type(complex_of(part_type(s.type)));
  const at::ScalarType keep = row_type(slot, id, s.type);
  const bool fits = keep == got && tensor.strides() == c10::IntArrayRef(r.strides) &&
                    tensor.storage_offset() == r.storage_offset && !tensor.is_conj() && !tensor.is_neg() &&
                    tensor.device().type() == device_of(slot).type();
  if (fits) {
    s.storage = tensor.storage();
    return;
  }
  s.storage =
      new_storage(elements(slot, r) * static_cast<std::int64_t>(c10::elementSize(keep)), device_of(slot));
  view(id).copy_(tensor);
}

void SlotStore::store(TensorId id, const at::Tensor& tensor) {
  const TensorRow& r = row(id);
  State& s = state(id);
  if (tensor.sizes() == c10::IntArrayRef(r.sizes)) {
    own(id);
    view(id).copy_(tensor);
    return;
  }
  const bool paired = plan_.slots[slot_of(id)].paired;
  const at::Tensor whole = (paired && tensor.scalar_type() == at::kBFloat16 ? tensor.to(at::kFloat) : tensor)
                               .to(device_of(slot_of(id)))
                               .contiguous();
  s.storage = whole.storage();
  s.shared = false;
  s.type = paired ? part_type(whole.scalar_type()) : whole.scalar_type();
}

void SlotStore::allocate(TensorId id) {
  const SlotId slot = slot_of(id);
  State& s = states_[slot];
  if (s.storage) return;
  s.type = plan_.slots[slot].mixed ? scalar_type_of(row(id).dtype) : kept_type(slot);
  const std::int64_t n = elements(slot, row(id));
  if (n > (std::int64_t{1} << 40))
    throw std::runtime_error(slot_name(doc_, slot) + " has an impossible size");
  s.storage = at::zeros({n}, at::device(device_of(slot)).dtype(row_type(slot, id, s.type))).storage();
}

bool SlotStore::holds(TensorId id, const at::Tensor& tensor) const {
  const State& s = states_[slot_of(id)];
  return s.storage && tensor.defined() && tensor.has_storage() &&
         tensor.storage().unsafeGetStorageImpl() == s.storage.unsafeGetStorageImpl();
}

void SlotStore::release(SlotId slot) {
  State& s = states_[slot];
  s.storage = c10::Storage();
  s.shared = false;
  s.gone = true;
}

}  // namespace nanquest::trace
