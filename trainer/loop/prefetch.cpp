#include "trainer/loop/prefetch.h"

#include <ATen/record_function.h>

#include <utility>

namespace nanquest::trainer {

Samples load(const Task& task, std::int64_t position, std::int64_t size) {
  Samples samples{task.train_batch(position, size), {}};
  samples.faults = task.faults(samples.batch);
  return samples;
}

Prefetcher::Prefetcher(const Task& task) : task_(task), thread_([this] { work(); }) {}

Prefetcher::~Prefetcher() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Prefetcher::ahead(std::int64_t position, std::int64_t size) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !busy_; });
  wanted_ = {position, size};
  made_.reset();
  error_ = nullptr;
  busy_ = true;
  changed_.notify_all();
}

Samples Prefetcher::take(std::int64_t position, std::int64_t size) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !busy_; });
  const bool is_it = wanted_ == Wanted{position, size};
  wanted_.reset();
  std::optional<Samples> made = std::exchange(made_, std::nullopt);
  const std::exception_ptr error = std::exchange(error_, nullptr);
  lock.unlock();
  if (!is_it) return load(task_, position, size);
  if (error) std::rethrow_exception(error);
  return std::move(*made);
}

void Prefetcher::settle() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !busy_; });
}

void Prefetcher::work() {
  // The ops that make a batch are not part of the step that is being recorded.
  const at::DisableRecordFunctionGuard unseen;
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ending_ || busy_; });
    if (ending_) return;
    const Wanted wanted = *wanted_;
    lock.unlock();
    std::optional<Samples> made;
    std::exception_ptr error;
    try {
      made = load(task_, wanted.position, wanted.size);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    made_ = std::move(made);
    error_ = error;
    busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace nanquest::trainer
