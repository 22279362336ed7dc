/// queue: streams whose work runs later than it was asked for.
///
/// A stream is a queue of tasks. The host only puts them there; they run when the host waits for the stream,
/// and in between whenever a seeded dice says so: some of them, of streams in any order that events allow.
/// Whoever forgets to wait sees old values or memory that belongs to somebody else by now. Seed 0 runs each
/// task at once.
#pragma once

#include <c10/core/Stream.h>

#include <cstdint>
#include <functional>
#include <memory>

namespace nqdev {

/// How often an event was recorded, and up to which of them its streams have come.
struct Event {
  std::int64_t recorded = 0, done = 0;
  double at = 0;  ///< milliseconds of the host's clock when it was reached last
};
using EventPtr = std::shared_ptr<Event>;

/// New dice, after all that is pending has run.
void set_seed(std::uint64_t seed);

/// The calling thread's device, and its stream of a device.
int current_device();
void set_current_device(int device);
c10::Stream stream_of(int device, c10::StreamId id);
c10::StreamId current_stream(int device);
void set_current_stream(int device, c10::StreamId id);
/// A stream of the device that is not used elsewhere.
c10::StreamId new_stream(int device);

/// Puts work on a stream. An exception of the task is a pending error.
void enqueue(int device, c10::StreamId stream, std::function<void()> task);
void record(const EventPtr& event, int device, c10::StreamId stream);
/// Later work on the stream waits for what the event stands for now; does nothing if it was never recorded.
void wait(const EventPtr& event, int device, c10::StreamId stream);

bool is_idle(int device, c10::StreamId stream);
bool is_done(const EventPtr& event);

/// The host waits: counted, and pending errors are thrown.
void synchronise(int device, c10::StreamId stream);
void synchronise_device(int device);
void synchronise(const EventPtr& event);
/// Tasks that have not run.
std::int64_t pending();

}  // namespace nqdev
