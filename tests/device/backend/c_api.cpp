// What Python's side of the backend (nqdev.py) calls.
#include <cstdint>

#include "tests/device/backend/allocator.h"
#include "tests/device/backend/queue.h"
#include "tests/device/backend/state.h"

extern "C" {

void nqdev_set_seed(std::uint64_t seed) {
  nqdev::set_seed(seed);
}
std::int64_t nqdev_counted(int which) {
  return nqdev::counted(static_cast<nqdev::Counter>(which));
}
void nqdev_reset_counters() {
  nqdev::reset_counters();
}
void nqdev_fail(int what, std::int64_t after) {
  nqdev::fail(static_cast<nqdev::Failure>(what), after);
}
void nqdev_heal() {
  nqdev::heal();
}
std::int64_t nqdev_pending() {
  return nqdev::pending();
}
std::int64_t nqdev_live_bytes(int device) {
  return nqdev::live_bytes(device);
}
void nqdev_set_limit(int device, std::int64_t bytes) {
  nqdev::set_limit(device, bytes);
}
}
