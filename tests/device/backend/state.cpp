#include "tests/device/backend/state.h"

#include <c10/util/Exception.h>

#include <array>
#include <string>

namespace nqdev {
namespace {

std::array<std::int64_t, static_cast<std::size_t>(Counter::count_)> counters{};
std::array<std::int64_t, static_cast<std::size_t>(Failure::count_)> planned{-1, -1, -1};
std::string pending_error;
bool lost = false;

[[noreturn]] void throw_lost() {
  TORCH_CHECK(false, "nqdev: the device is lost");
}

}  // namespace

std::recursive_mutex& mutex() {
  static auto* made = new std::recursive_mutex;
  return *made;
}

void count(Counter which) {
  const std::lock_guard lock(mutex());
  ++counters[static_cast<std::size_t>(which)];
}

std::int64_t counted(Counter which) {
  const std::lock_guard lock(mutex());
  return counters[static_cast<std::size_t>(which)];
}

void reset_counters() {
  const std::lock_guard lock(mutex());
  counters.fill(0);
}

void fail(Failure what, std::int64_t after) {
  const std::lock_guard lock(mutex());
  planned[static_cast<std::size_t>(what)] = after;
}

bool fails_now(Failure what) {
  const std::lock_guard lock(mutex());
  std::int64_t& left = planned[static_cast<std::size_t>(what)];
  return left >= 0 && left-- == 0;
}

void set_pending_error(const char* text) {
  const std::lock_guard lock(mutex());
  if (pending_error.empty()) pending_error = text;
}

void throw_pending_error() {
  const std::lock_guard lock(mutex());
  if (lost) throw_lost();
  if (pending_error.empty()) return;
  TORCH_CHECK(false, "nqdev: an earlier kernel failed: ", pending_error);
}

void check_alive() {
  const std::lock_guard lock(mutex());
  lost = lost || fails_now(Failure::lost);
  if (lost) throw_lost();
}

void heal() {
  const std::lock_guard lock(mutex());
  pending_error.clear();
  planned.fill(-1);
  lost = false;
}

}  // namespace nqdev
