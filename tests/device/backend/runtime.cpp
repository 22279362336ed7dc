// What LibTorch asks of a device: the guard with streams and events, and the hooks.
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/DeviceType.h>
#include <c10/core/Storage.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "tests/device/backend/allocator.h"
#include "tests/device/backend/generator.h"
#include "tests/device/backend/graph.h"
#include "tests/device/backend/memory.h"
#include "tests/device/backend/queue.h"
#include "tests/device/backend/state.h"

namespace nqdev {
namespace {

constexpr c10::DeviceType kType = c10::DeviceType::PrivateUse1;

c10::Device device(int index) {
  return {kType, static_cast<c10::DeviceIndex>(index)};
}
int index_of(c10::Device d) {
  return d.has_index() ? d.index() : current_device();
}
EventPtr& event_of(void* event) {
  return *static_cast<EventPtr*>(event);
}

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kType; }
  c10::Device exchangeDevice(c10::Device to) const override {
    const c10::Device before = getDevice();
    setDevice(to);
    return before;
  }
  c10::Device getDevice() const override { return device(current_device()); }
  void setDevice(c10::Device to) const override { set_current_device(index_of(to)); }
  void uncheckedSetDevice(c10::Device to) const noexcept override { set_current_device(index_of(to)); }
  c10::DeviceIndex deviceCount() const noexcept override { return kDevices; }

  c10::Stream getStream(c10::Device d) const override {
    return stream_of(index_of(d), current_stream(index_of(d)));
  }
  c10::Stream getDefaultStream(c10::Device d) const override { return stream_of(index_of(d), 0); }
  c10::Stream getStreamFromGlobalPool(c10::Device d, bool) const override { return getNewStream(d, 0); }
  c10::Stream getNewStream(c10::Device d, int) const override {
    return stream_of(index_of(d), new_stream(index_of(d)));
  }
  c10::Stream exchangeStream(c10::Stream to) const override {
    const c10::Stream before = getStream(to.device());
    set_current_stream(to.device_index(), to.id());
    return before;
  }
  bool queryStream(const c10::Stream& s) const override { return is_idle(s.device_index(), s.id()); }
  void synchronizeStream(const c10::Stream& s) const override { synchronise(s.device_index(), s.id()); }
  void synchronizeDevice(const c10::DeviceIndex d) const override {
    synchronise_device(d < 0 ? current_device() : d);
  }

  void record(void** event, const c10::Stream& s, const c10::DeviceIndex, c10::EventFlag) const override {
    if (!*event) *event = new EventPtr(std::make_shared<Event>());
    nqdev::record(event_of(*event), s.device_index(), s.id());
  }
  void block(void* event, const c10::Stream& s) const override {
    if (event) wait(event_of(event), s.device_index(), s.id());
  }
  bool queryEvent(void* event) const override { return !event || is_done(event_of(event)); }
  void synchronizeEvent(void* event) const override {
    if (event) synchronise(event_of(event));
  }
  double elapsedTime(void* from, void* to, const c10::DeviceIndex) const override {
    return event_of(to)->at - event_of(from)->at;
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    delete static_cast<EventPtr*>(event);
  }
  void recordDataPtrOnStream(const c10::DataPtr& block, const c10::Stream& s) const override {
    record_stream(block, s);
  }
};

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(at::DeviceIndex) const override { return true; }
  at::DeviceIndex deviceCount() const override { return kDevices; }
  void setCurrentDevice(at::DeviceIndex d) const override { set_current_device(d); }
  at::DeviceIndex getCurrentDevice() const override { return static_cast<at::DeviceIndex>(current_device()); }
  at::DeviceIndex exchangeDevice(at::DeviceIndex d) const override {
    const at::DeviceIndex before = getCurrentDevice();
    if (d >= 0) set_current_device(d);
    return before;
  }
  at::DeviceIndex maybeExchangeDevice(at::DeviceIndex d) const override { return exchangeDevice(d); }
  bool isPinnedPtr(const void* data) const override { return is_pinned(data); }
  at::Allocator* getPinnedMemoryAllocator() const override { return pinned_allocator(); }
  at::Device getDeviceFromPtr(void* data) const override { return device(device_of(data)); }
  const at::Generator& getDefaultGenerator(at::DeviceIndex d) const override {
    return default_generator(d < 0 ? current_device() : d);
  }
  at::Generator getNewGenerator(at::DeviceIndex d) const override {
    return new_generator(d < 0 ? current_device() : d);
  }
  void resizePrivateUse1Bytes(const c10::Storage& storage, std::size_t bytes) const override {
    auto* const impl = storage.unsafeGetStorageImpl();
    const c10::DeviceGuard guard(storage.device());
    c10::DataPtr more = impl->allocator()->allocate(bytes);
    const std::size_t kept = std::min(bytes, storage.nbytes());
    if (kept) device_allocator()->copy_data(more.get(), storage.data(), kept);
    impl->set_data_ptr(std::move(more));
    impl->set_nbytes(bytes);
  }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

[[maybe_unused]] const bool runtime_registered = [] {
  c10::register_privateuse1_backend("nqdev");
  register_graphs();
  static Hooks hooks;
  at::RegisterPrivateUse1HooksInterface(&hooks);
  return true;
}();

}  // namespace
}  // namespace nqdev
