#include "probe/record/governor.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <string_view>

#include "probe/tensor/torch_versions.h"

namespace nanquest {
namespace {

constexpr double kLong = 0.1;    // seconds that a user would notice
constexpr double kMuch = 256e6;  // bytes that a user would miss
constexpr std::uint64_t kLittle = 1 << 20;
constexpr int kMeasurements = 3;  // of short times, before they are believed

std::uint64_t number_in(const char* path) {
  std::ifstream file(path);
  std::uint64_t value = 0;
  return file >> value ? value : 0;
}

/// Words for a sentence about free memory: the device, or how many processes share the memory.
std::string whose(at::Device device) {
  if (!device.is_cpu()) return " on " + device.str();
  const int processes = processes_here();
  return processes == 1 ? "" : " that each of " + std::to_string(processes) + " processes has";
}

}  // namespace

std::string amount(double bytes) {
  char text[32];
  std::snprintf(text, sizeof text, bytes < 1e9 ? "%.0f MB" : "%.1f GB",
                bytes < 1e9 ? bytes / 1e6 : bytes / 1e9);
  return text;
}

std::uint64_t free_memory(at::Device device) {
  if (!device.is_cpu()) return free_memory_of(device);
  std::uint64_t free = 0;
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);)
    if (line.rfind("MemAvailable:", 0) == 0) free = std::strtoull(line.c_str() + 13, nullptr, 10) * 1024;
  const std::uint64_t limit = number_in("/sys/fs/cgroup/memory.max");  // "max" reads as 0
  const std::uint64_t used = number_in("/sys/fs/cgroup/memory.current");
  if (limit > 0) free = std::min(free, limit > used ? limit - used : 0);
  return free / static_cast<std::uint64_t>(processes_here());
}

int processes_here() {
  // torchrun, accelerate, Ray Train; DeepSpeed; Open MPI; Intel MPI and MPICH; srun ("4(x2)": on both nodes)
  for (const char* name : {"LOCAL_WORLD_SIZE", "LOCAL_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS",
                           "SLURM_STEP_TASKS_PER_NODE"}) {
    const char* text = std::getenv(name);
    const int count = text ? std::atoi(text) : 0;
    if (count > 0) return count;
  }
  return 1;
}

bool UpdateGovernor::affords(std::uint64_t bytes, at::Device device) {
  return !too_slow_ && has_room(bytes, device);
}

bool UpdateGovernor::has_room(std::uint64_t bytes, at::Device device) {
  if (options_.keep_steps <= 0 || refused_) return false;
  if (bytes <= bytes_ + bytes_ / 4) return true;
  // True the first time, and when the model or its state grew.
  wanted_ = static_cast<double>(bytes) * (options_.keep_steps + 1);
  free_ = static_cast<double>(free_memory(device));
  device_ = device;
  if (wanted_ > free_ * options_.memory_share) {
    refused_ = true;
    reason_ = "what the optimizer overwrites is not kept: that would take " + amount(wanted_) +
              ", more than " + std::to_string(std::lround(100 * options_.memory_share)) + " % of the " +
              amount(free_) + " of free memory" + whose(device);
    return false;
  }
  bytes_ = bytes;
  return true;
}

bool UpdateGovernor::may_hold(std::uint64_t bytes, at::Device device) {
  if (bytes <= held_) return true;
  if (bytes >= too_much_) return false;
  const bool may =
      static_cast<double>(bytes) <= static_cast<double>(free_memory(device)) * options_.memory_share;
  (may ? held_ : too_much_) = bytes;
  return may;
}

bool UpdateGovernor::wants(std::uint64_t bytes, at::Device device) {
  if (!affords(bytes, device)) return false;
  // Nothing is copied until the length of a step is known.
  if (step_seconds_ < 0 || ++since_ < every_) return false;
  since_ = 0;
  return true;
}

std::string UpdateGovernor::announcement() {
  if (announced_ || refused_ || too_slow_ || wanted_ < kMuch) return "";
  announced_ = true;
  return "up to " + amount(wanted_) + " of the " + amount(free_) + " of free memory" + whose(device_) +
         " are used to keep what the last " + std::to_string(options_.keep_steps) +
         " updates overwrite (--keep-steps 0 takes none, and such damage then can't be replayed)";
}

double UpdateGovernor::allowed() const {
  const double trifle = options_.trifle * (bytes_ < kLittle ? 3 : 1);
  return options_.time_share > 0 ? std::max(options_.time_share * step_seconds_, trifle) : 0;
}

void UpdateGovernor::kept(const record::UpdateCost& cost) {
  if (step_seconds_ <= 0) return;
  const double seconds = cost.seconds + cost.copying;
  if (cost.grew) {
    // Touching memory for the first time takes long and tells nothing about later steps. But where it took
    // long, the next time should not follow at once.
    if (cost.seconds < kLong) return;
    const double pause = std::ceil(seconds / allowed());
    every_ = std::max(every_, static_cast<int>(std::min<double>(pause, options_.seldom)));
    return;
  }
  keep_seconds_ = keep_seconds_ < 0 ? seconds : std::min(seconds, 0.8 * keep_seconds_ + 0.2 * seconds);
  // One measurement may hold a pause of a busy machine.
  if (++measured_ < kMeasurements && options_.time_share > 0 && seconds < kLong) {
    every_ = 1;
    return;
  }
  const double every = std::ceil(keep_seconds_ / allowed());
  every_ = std::max(1, static_cast<int>(std::min(every, 1e6)));
  if (every_ == 1) return;
  char text[200];
  std::snprintf(
      text, sizeof text, "what the optimizer overwrites is kept %s: it takes %.1f ms of a step's %.1f ms",
      every_ > options_.seldom ? "in no step" : ("every " + std::to_string(every_) + " steps only").c_str(),
      1e3 * keep_seconds_, 1e3 * step_seconds_);
  if (reason_.empty()) reason_ = text;
  too_slow_ = every_ > options_.seldom;
}

void UpdateGovernor::step_took(double seconds) {
  // A pause for an evaluation or a checkpoint does not count as step time.
  step_seconds_ = step_seconds_ < 0 ? seconds : std::min(seconds, 0.8 * step_seconds_ + 0.2 * seconds);
}

std::string UpdateGovernor::complaint() {
  if (told_ || reason_.empty()) return "";
  told_ = true;
  return reason_ + "; damage that it does itself is seen, but may not be replayed";
}

}  // namespace nanquest
