#include "viewer/model/loader.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <utility>

namespace nanquest::viewer {

/// An errand in progress. `session` belongs to the loader's thread until `finished`, then to the other.
struct Loader::Job {
  Job(Errand wanted, const Session& from)
      : errand(std::move(wanted)), session(from), before(from.selection()) {}
  Errand errand;
  Session session;
  const Selection before;
  Progress progress;
  std::string trouble;  ///< why it failed
  bool news = false, finished = false;
};

Loader::Loader(std::function<void()> wake) : wake_(std::move(wake)), thread_([this] { run(); }) {}

Loader::~Loader() {
  give_up();
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  asked_.notify_one();
  thread_.join();
}

void Loader::wake_with(std::function<void()> wake) {
  const std::lock_guard lock(mutex_);
  wake_ = std::move(wake);
}

void Loader::ask(const Session& session, Errand errand) {
  if (errand.quiet && busy()) return;
  give_up();
  current_ = std::make_shared<Job>(std::move(errand), session);
  {
    const std::lock_guard lock(mutex_);
    waiting_ = current_;
  }
  asked_.notify_one();
}

void Loader::give_up() {
  if (current_ == nullptr) return;
  current_->progress.stop();
  const std::lock_guard lock(mutex_);
  waiting_.reset();
  current_.reset();
}

bool Loader::cancel() {
  if (current_ == nullptr || current_->errand.quiet) return false;
  give_up();
  ++stops_;
  return true;
}

bool Loader::has_news() {
  const std::lock_guard lock(mutex_);
  return current_ != nullptr && current_->finished;
}

bool Loader::wait(std::chrono::milliseconds most) {
  std::unique_lock lock(mutex_);
  return finished_.wait_for(lock, most, [&] { return current_ == nullptr || current_->finished; }) &&
         current_ != nullptr;
}

bool Loader::collect(Session& session) {
  if (!has_news()) return false;
  const std::shared_ptr<Job> job = std::exchange(current_, nullptr);
  trouble_ = job->trouble;
  if (!trouble_.empty()) ++stops_;
  if (!job->news) return false;
  const Statistic statistic = session.selection().statistic;
  if (job->errand.selects && statistic != job->before.statistic && job->session.history().has(statistic))
    job->session.select_statistic(statistic);
  if (job->errand.selects && session.selection().what_if != job->before.what_if)
    job->session.select_what_if(session.selection().what_if);
  if (job->errand.selects && session.selection().smoothing != job->before.smoothing)
    job->session.select_smoothing(session.selection().smoothing);
  if (!job->errand.selects && session.selection() != job->before) job->session.keep(session);
  // Notes that the user wrote meanwhile.
  if (session.path() == job->session.path() && !session.is_nothing()) job->session.set_notes(session.notes());
  std::swap(session, job->session);
  if (job->errand.done) job->errand.done();
  return true;
}

std::string Loader::doing() const {
  if (current_ == nullptr || current_->errand.quiet) return "";
  const int percent = static_cast<int>(std::floor(100 * current_->progress.share()));
  return "reading " + current_->errand.what + ", " + std::to_string(percent) + " %";
}

void Loader::perform(Job& job) {
  const auto keep = [&] {
    const Session& shown = job.session;
    const auto hold = [&](const std::shared_ptr<const OpenIncident>& incident) {
      if (incident != nullptr && std::ranges::find(kept_, incident) == kept_.end()) kept_.push_back(incident);
    };
    hold(shown.held_incident());
    for (const auto& other : shown.others()) hold(other->held_incident());
  };
  keep();
  job.session.report_to(&job.progress);
  try {
    job.news = job.errand.work(job.session);
  } catch (const std::exception& error) {
    job.trouble = error.what();
  }
  job.session.report_to(nullptr);
  keep();
}

void Loader::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    asked_.wait(lock, [&] { return ends_ || waiting_ != nullptr; });
    if (ends_) return;
    std::shared_ptr<Job> job = std::move(waiting_);
    lock.unlock();
    perform(*job);
    lock.lock();
    job->finished = true;
    if (wake_) wake_();
    job.reset();
    // The last owner of an incident closes its file: that must be this thread.
    std::erase_if(kept_, [](const auto& incident) { return incident.use_count() == 1; });
    finished_.notify_all();
  }
}

}  // namespace nanquest::viewer
