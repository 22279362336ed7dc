/// graph: work that is put on a stream during a capture does not run: it becomes a graph, which runs whenever
/// it is replayed, on the same addresses. As on CUDA the host may not wait meanwhile: an attempt throws, and
/// the capture is lost.
#pragma once

#include <c10/core/Stream.h>

#include <functional>
#include <memory>
#include <vector>

namespace nqdev {

/// What one capture recorded. Its memory is its own as long as it lives.
struct Captured {
  int device = 0;
  c10::StreamId stream = 0;
  std::vector<std::function<void()>> tasks;
  bool lost = false;  ///< the host tried to wait
};

/// The active capture on this stream; null if there is none. With nqdev's mutex.
Captured* capturing(int device, c10::StreamId stream);
/// The active capture on this device, on any stream.
Captured* capturing(int device);
/// Throws if the host must not wait for the device now, and spoils the capture.
void forbid_waiting(int device);

/// LibTorch's face of graphs knows the device by its name, so that must have one already. Without effect
/// where LibTorch has none.
void register_graphs();

/// A graph replayed on the calling thread's stream.
void replay(const Captured& graph);

}  // namespace nqdev
