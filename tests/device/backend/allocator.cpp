#include "tests/device/backend/allocator.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <vector>

#include "tests/device/backend/graph.h"
#include "tests/device/backend/memory.h"
#include "tests/device/backend/queue.h"
#include "tests/device/backend/state.h"

namespace nqdev {
namespace {

struct Block {
  void* at = nullptr;
  std::size_t bytes = 0;
  int device = 0;
  c10::StreamId stream = 0;
  std::set<c10::StreamId> used_by = {};  ///< other streams
  std::vector<EventPtr> awaited = {};    ///< once it is free
  const Captured* graph = nullptr;       ///< the one that will use it again
};

struct Pool {
  std::vector<Block*> free;  ///< the last one that was freed is handed out first
  std::int64_t live = 0, limit = static_cast<std::int64_t>(kDeviceBytes);
};

Pool& pool(int device) {
  static auto* pools = new std::array<Pool, kDevices>;
  return pools->at(static_cast<std::size_t>(device));
}

bool fits(const Block& block, std::size_t bytes, c10::StreamId stream, const Captured* graph) {
  return block.graph == graph && block.stream == stream && block.bytes >= bytes && block.bytes <= 2 * bytes &&
         std::all_of(block.awaited.begin(), block.awaited.end(),
                     [](const EventPtr& e) { return is_done(e); });
}

Block* take(int device, std::size_t bytes, c10::StreamId stream) {
  std::vector<Block*>& free = pool(device).free;
  const Captured* const graph = capturing(device, stream);
  for (std::size_t i = free.size(); i-- > 0;) {
    if (!fits(*free[i], bytes, stream, graph)) continue;
    Block* const block = free[i];
    free.erase(free.begin() + static_cast<std::ptrdiff_t>(i));
    block->awaited.clear();
    return block;
  }
  void* const at = more_memory(device, bytes);
  return at ? new Block{at, bytes, device, stream, {}, {}, graph} : nullptr;
}

void give_back(void* context) {
  const std::lock_guard lock(mutex());
  auto* const block = static_cast<Block*>(context);
  for (const c10::StreamId stream : block->used_by) {
    block->awaited.push_back(std::make_shared<Event>());
    record(block->awaited.back(), block->device, stream);
  }
  block->used_by.clear();
  pool(block->device).live -= static_cast<std::int64_t>(block->bytes);
  pool(block->device).free.push_back(block);
}

struct DeviceAllocator final : c10::DeviceAllocator {
  c10::DataPtr allocate(std::size_t bytes) override {
    const std::lock_guard lock(mutex());
    const int device = current_device();
    const c10::Device where(c10::DeviceType::PrivateUse1, static_cast<c10::DeviceIndex>(device));
    check_alive();
    if (bytes == 0) return {nullptr, nullptr, &c10::detail::deleteNothing, where};
    count(Counter::allocations);
    bytes = (bytes + 511) / 512 * 512;
    Pool& from = pool(device);
    const bool full = from.live + static_cast<std::int64_t>(bytes) > from.limit;
    Block* const block =
        full || fails_now(Failure::out_of_memory) ? nullptr : take(device, bytes, current_stream(device));
    TORCH_CHECK_WITH(OutOfMemoryError, block, "nqdev out of memory: tried to allocate ", bytes, " bytes; ",
                     from.live, " are in use");
    from.live += static_cast<std::int64_t>(block->bytes);
    return {block->at, block, &give_back, where};
  }
  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override {}
  void recordStream(const c10::DataPtr& data, c10::Stream stream) override { record_stream(data, stream); }
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex) override { return {}; }
  void resetAccumulatedStats(c10::DeviceIndex) override {}
  void resetPeakStats(c10::DeviceIndex) override {}
  std::pair<std::size_t, std::size_t> getMemoryInfo(c10::DeviceIndex device) override {
    const std::lock_guard lock(mutex());
    const Pool& of = pool(device);
    return {static_cast<std::size_t>(of.limit - of.live), static_cast<std::size_t>(of.limit)};
  }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    const int device = current_device();
    count(Counter::copies);
    enqueue(device, current_stream(device), [=] {
      const Unlocked open;
      std::memcpy(to, from, bytes);
    });
  }
};

struct PinnedAllocator final : c10::Allocator {
  static std::map<const char*, std::size_t>& all() {
    static auto* blocks = new std::map<const char*, std::size_t>;
    return *blocks;
  }
  static void release(void* at) {
    const std::lock_guard lock(mutex());
    all().erase(static_cast<const char*>(at));
    std::free(at);
  }
  c10::DataPtr allocate(std::size_t bytes) override {
    const std::lock_guard lock(mutex());
    if (bytes == 0) return {nullptr, nullptr, &c10::detail::deleteNothing, c10::Device(c10::kCPU)};
    void* const at = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
    all()[static_cast<const char*>(at)] = bytes;
    return {at, at, &release, c10::Device(c10::kCPU)};
  }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }
};

const c10::AllocatorRegisterer<c10::DeviceType::PrivateUse1> allocator_registered(device_allocator());

}  // namespace

c10::Allocator* device_allocator() {
  static auto* made = new DeviceAllocator;
  return made;
}

c10::Allocator* pinned_allocator() {
  static auto* made = new PinnedAllocator;
  return made;
}

bool is_pinned(const void* address) {
  const std::lock_guard lock(mutex());
  const auto& all = PinnedAllocator::all();
  auto at = all.upper_bound(static_cast<const char*>(address));
  if (at == all.begin()) return false;
  --at;
  return static_cast<const char*>(address) < at->first + at->second;
}

void record_stream(const c10::DataPtr& block, const c10::Stream& stream) {
  const std::lock_guard lock(mutex());
  auto* const used = block.cast_context<Block>(&give_back);
  if (used && used->stream != stream.id()) used->used_by.insert(stream.id());
}

void release_graph(const Captured* graph) {
  const std::lock_guard lock(mutex());
  for (Block* const block : pool(graph->device).free)
    if (block->graph == graph) block->graph = nullptr;
}

std::int64_t live_bytes(int device) {
  const std::lock_guard lock(mutex());
  return pool(device).live;
}

void set_limit(int device, std::int64_t bytes) {
  const std::lock_guard lock(mutex());
  pool(device).limit = bytes;
}

}  // namespace nqdev
