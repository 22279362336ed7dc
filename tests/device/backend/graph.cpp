#include "tests/device/backend/graph.h"

#include <c10/util/Exception.h>

#include <array>

#include "tests/device/backend/allocator.h"
#include "tests/device/backend/launch.h"
#include "tests/device/backend/memory.h"
#include "tests/device/backend/queue.h"
#include "tests/device/backend/state.h"

// LibTorch's own face of graphs is younger than the oldest version that this is built against.
#if __has_include(<ATen/core/GraphImplInterface.h>)
#include <ATen/core/GraphImplInterface.h>
#define NQDEV_GRAPHS
#endif

namespace nqdev {
namespace {

std::array<Captured*, kDevices>& captures() {
  static auto* one = new std::array<Captured*, kDevices>{};
  return *one;
}

}  // namespace

Captured* capturing(int device) {
  return captures().at(static_cast<std::size_t>(device));
}

Captured* capturing(int device, c10::StreamId stream) {
  Captured* const graph = capturing(device);
  return graph && graph->stream == stream ? graph : nullptr;
}

void forbid_waiting(int device) {
  Captured* const graph = capturing(device);
  if (!graph) return;
  graph->lost = true;
  TORCH_CHECK(false, "nqdev: operation not permitted while a stream is capturing");
}

void replay(const Captured& graph) {
  count(Counter::launches);
  check_alive();
  for (const auto& task : graph.tasks) enqueue(graph.device, current_stream(graph.device), task);
}

#ifdef NQDEV_GRAPHS
namespace {

struct Graph final : at::GraphImplInterface {
  explicit Graph(const at::GraphImplArgs&) {}
  ~Graph() override { reset(); }

  void capture_begin(at::MempoolId_t, at::GraphCaptureMode) override {
    const std::lock_guard lock(mutex());
    const int device = current_device();
    TORCH_CHECK(!capturing(device), "nqdev: another graph is being captured");
    graph_ = std::make_unique<Captured>();
    graph_->device = device;
    graph_->stream = current_stream(device);
    captures().at(static_cast<std::size_t>(device)) = graph_.get();
  }
  void capture_end() override {
    const std::lock_guard lock(mutex());
    TORCH_CHECK(graph_ && capturing(graph_->device) == graph_.get(), "nqdev: this graph is not being captured");
    captures().at(static_cast<std::size_t>(graph_->device)) = nullptr;
    TORCH_CHECK(!graph_->lost, "nqdev: the capture was lost: the host waited while it went on");
  }
  void instantiate() override {}
  void replay() override {
    const std::lock_guard lock(mutex());
    TORCH_CHECK(graph_ && !graph_->lost && !capturing(graph_->device), "nqdev: there is no graph to replay");
    nqdev::replay(*graph_);
  }
  void reset() override {
    const std::lock_guard lock(mutex());
    if (!graph_) return;
    if (capturing(graph_->device) == graph_.get())
      captures().at(static_cast<std::size_t>(graph_->device)) = nullptr;
    release_graph(graph_.get());
    graph_.reset();
  }
  at::MempoolId_t pool() const override { return {0, 1}; }
  void enable_debug_mode() override {}
  void debug_dump(const std::string&) override {}

 private:
  std::unique_ptr<Captured> graph_;
};

}  // namespace

void register_graphs() {
  at::GraphImplRegistry()->Register(
      c10::DeviceTypeName(c10::DeviceType::PrivateUse1, /*lower_case=*/false),
      [](const at::GraphImplArgs& args) -> std::unique_ptr<at::GraphImplInterface> {
        return std::make_unique<Graph>(args);
      });
}
#else
void register_graphs() {}
#endif

}  // namespace nqdev
