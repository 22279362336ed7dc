#include "tests/device/backend/queue.h"

#include <c10/util/Exception.h>

#include <array>
#include <chrono>
#include <deque>
#include <map>
#include <random>
#include <vector>

#include "tests/device/backend/graph.h"
#include "tests/device/backend/memory.h"
#include "tests/device/backend/state.h"

namespace nqdev {
namespace {

/// More than so many tasks never wait on one stream.
constexpr std::size_t kLongest = 64;

struct Task {
  std::function<void()> run;  ///< empty: only waits
  EventPtr awaited;
  std::int64_t version = 0;
};

using Key = std::pair<int, c10::StreamId>;

struct World {
  std::map<Key, std::deque<Task>> queues;
  std::array<c10::StreamId, kDevices> last_stream{};
  std::mt19937_64 dice{0};
  bool eager = true;
  bool running = false;  ///< a task is: its own work must not start others
};

World& world() {
  static auto* made = new World;
  return *made;
}

thread_local int device_now = 0;
thread_local std::array<c10::StreamId, kDevices> stream_now{};

bool is_ready(const std::deque<Task>& queue) {
  return !queue.empty() && (!queue.front().awaited || queue.front().awaited->done >= queue.front().version);
}

void run_front(std::deque<Task>& queue) {
  const Task task = std::move(queue.front());
  queue.pop_front();
  if (!task.run) return;
  world().running = true;
  try {
    task.run();
  } catch (const c10::Error& e) {
    set_pending_error(e.what_without_backtrace());
  } catch (const std::exception& e) {
    set_pending_error(e.what());
  }
  world().running = false;
}

std::vector<std::deque<Task>*> ready_queues() {
  std::vector<std::deque<Task>*> ready;
  for (auto& [key, queue] : world().queues)
    if (is_ready(queue)) ready.push_back(&queue);
  return ready;
}

/// Runs one task of any stream; false if none can run.
bool run_any() {
  const auto ready = ready_queues();
  if (ready.empty()) return false;
  run_front(*ready[world().dice() % ready.size()]);
  return true;
}

template <class Done>
void run_until(const Done& done, std::deque<Task>* first) {
  while (!done()) {
    // As little as possible of the other streams, but not always nothing.
    if (first && is_ready(*first) && world().dice() % 4 != 0)
      run_front(*first);
    else
      TORCH_CHECK(run_any(), "nqdev: streams wait for each other");
  }
}

void roll_dice(std::deque<Task>& queue) {
  World& w = world();
  if (w.running) return;
  if (w.eager) return run_until([&] { return queue.empty(); }, &queue);
  if (w.dice() % 4 == 0)
    for (std::uint64_t n = w.dice() % 8; n > 0 && run_any(); --n) {
    }
  run_until([&] { return queue.size() < kLongest; }, &queue);
}

double now_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

void set_seed(std::uint64_t seed) {
  const std::lock_guard lock(mutex());
  while (run_any()) {
  }
  world().eager = seed == 0;
  world().dice.seed(seed);
}

int current_device() {
  return device_now;
}
void set_current_device(int device) {
  TORCH_CHECK(device >= 0 && device < kDevices, "nqdev: there is no device ", device);
  device_now = device;
}
c10::Stream stream_of(int device, c10::StreamId id) {
  return c10::Stream(c10::Stream::UNSAFE,
                     c10::Device(c10::DeviceType::PrivateUse1, static_cast<c10::DeviceIndex>(device)), id);
}
c10::StreamId current_stream(int device) {
  return stream_now.at(static_cast<std::size_t>(device));
}
void set_current_stream(int device, c10::StreamId id) {
  stream_now.at(static_cast<std::size_t>(device)) = id;
}
c10::StreamId new_stream(int device) {
  const std::lock_guard lock(mutex());
  return ++world().last_stream.at(static_cast<std::size_t>(device));
}

void enqueue(int device, c10::StreamId stream, std::function<void()> task) {
  const std::lock_guard lock(mutex());
  if (Captured* const graph = capturing(device, stream)) return graph->tasks.push_back(std::move(task));
  std::deque<Task>& queue = world().queues[{device, stream}];
  queue.push_back({std::move(task), nullptr, 0});
  roll_dice(queue);
}

void record(const EventPtr& event, int device, c10::StreamId stream) {
  const std::lock_guard lock(mutex());
  if (capturing(device, stream)) return;  // order within one stream is the graph's own
  const std::int64_t version = ++event->recorded;
  enqueue(device, stream, [event, version] {
    event->done = std::max(event->done, version);
    event->at = now_ms();
  });
}

void wait(const EventPtr& event, int device, c10::StreamId stream) {
  const std::lock_guard lock(mutex());
  if (event->recorded == 0 || capturing(device, stream)) return;
  std::deque<Task>& queue = world().queues[{device, stream}];
  queue.push_back({{}, event, event->recorded});
  roll_dice(queue);
}

bool is_idle(int device, c10::StreamId stream) {
  const std::lock_guard lock(mutex());
  if (capturing(device, stream)) forbid_waiting(device);
  return world().queues[{device, stream}].empty();
}

bool is_done(const EventPtr& event) {
  const std::lock_guard lock(mutex());
  return event->done >= event->recorded;
}

void synchronise(int device, c10::StreamId stream) {
  const std::lock_guard lock(mutex());
  forbid_waiting(device);
  count(Counter::synchronisations);
  std::deque<Task>& queue = world().queues[{device, stream}];
  run_until([&] { return queue.empty(); }, &queue);
  throw_pending_error();
}

void synchronise_device(int device) {
  const std::lock_guard lock(mutex());
  forbid_waiting(device);
  count(Counter::synchronisations);
  for (auto& [key, queue] : world().queues)
    if (key.first == device) run_until([&queue = queue] { return queue.empty(); }, &queue);
  throw_pending_error();
}

void synchronise(const EventPtr& event) {
  const std::lock_guard lock(mutex());
  count(Counter::synchronisations);
  const std::int64_t version = event->recorded;
  run_until([&] { return event->done >= version; }, nullptr);
  throw_pending_error();
}

std::int64_t pending() {
  const std::lock_guard lock(mutex());
  std::int64_t sum = 0;
  for (const auto& [key, queue] : world().queues) sum += static_cast<std::int64_t>(queue.size());
  return sum;
}

}  // namespace nqdev
