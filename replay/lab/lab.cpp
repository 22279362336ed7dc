#include "replay/lab/lab.h"

#include <algorithm>
#include <atomic>
#include <ctime>
#include <exception>

namespace nanquest {
namespace {

constexpr std::size_t kMaxCheckpoints = 6;
/// A checkpoint before this share of the step saves too little to be worth its memory.
constexpr double kWorthwhile = 0.02;

std::atomic<bool> stop_asked{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler sets it");

/// Of the whole process.
double processor_seconds() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

}  // namespace

Lab::Lab(const Replayer& replayer, LabLimits limits)
    : replayer_(replayer),
      graph_(replayer.doc()),
      limits_(limits),
      opened_(std::chrono::steady_clock::now()),
      processor_(processor_seconds()) {}

void Lab::stop() noexcept {
  stop_asked = true;
}

bool Lab::stopped() noexcept {
  return stop_asked;
}

double Lab::spent() const {
  return std::min(std::chrono::duration<double>(std::chrono::steady_clock::now() - opened_).count(),
                  processor_seconds() - processor_);
}

double Lab::seconds() const {
  return limits_.seconds > 0 ? limits_.seconds : std::max(30.0, 20 * step_seconds_);
}

void Lab::make_room() {
  const auto held = [&] {
    std::uint64_t sum = 0;
    for (const Checkpoint& c : checkpoints_) sum += c.bytes();
    return sum;
  };
  while (checkpoints_.size() > 1 &&
         (checkpoints_.size() > kMaxCheckpoints || held() > limits_.checkpoint_bytes))
    checkpoints_.erase(checkpoints_.begin());
}

const Checkpoint* Lab::checkpoint_before(std::int32_t op) {
  const double ops = static_cast<double>(replayer_.doc().ops.size());
  if (op < kWorthwhile * ops) return nullptr;
  auto best = checkpoints_.end();
  for (auto it = checkpoints_.begin(); it != checkpoints_.end(); ++it)
    if (it->op() <= op && (best == checkpoints_.end() || it->op() > best->op())) best = it;
  if (best == checkpoints_.end() || op - best->op() > kWorthwhile * ops) {
    const Checkpoint* from = best == checkpoints_.end() ? nullptr : &*best;
    ops_run_ += op - (from ? from->op() : 0);
    checkpoints_.push_back(replayer_.checkpoint(op, from));
    make_room();
  } else {
    std::rotate(best, best + 1, checkpoints_.end());
  }
  return &checkpoints_.back();
}

RunResult Lab::run(const RunOptions& options, std::int32_t seen_from) {
  ++runs_;
  const Checkpoint* from = nullptr;
  if (options.precision == Precision::as_recorded && !options.local && !options.hash) {
    try {
      const std::int32_t first = options.edit.first_op(graph_).row();
      from = checkpoint_before(seen_from == kNone ? first : std::min(first, seen_from));
    } catch (const std::exception&) {  // memory: the run begins at the start
      checkpoints_.clear();
      from = nullptr;
    }
  }
  RunResult result = from ? replayer_.run(options, *from) : replayer_.run(options);
  const auto all = static_cast<std::int32_t>(replayer_.doc().ops.size());
  const std::int32_t end = result.decided_at != kNone    ? result.decided_at + 1
                           : options.stop_after != kNone ? std::min(all, options.stop_after + 1)
                                                         : all;
  ops_run_ += std::max(0, end - (from ? from->op() : 0));
  if (!from && end == all && step_seconds_ == 0) step_seconds_ = result.seconds;
  return result;
}

}  // namespace nanquest
