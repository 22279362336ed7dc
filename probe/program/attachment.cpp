#include "probe/program/attachment.h"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <nlohmann/json.hpp>
#include <utility>

#include "probe/program/reports.h"

namespace nanquest::program {
namespace {

constexpr int kExitOnIncident = 4;
/// A model with NaN weights has an incident in every step.
constexpr int kLines = 3;
constexpr std::chrono::seconds kBetweenNotes{1};

/// Runs at the end of the training thread, or of the program on that thread: before LibTorch's own
/// thread-local objects are destroyed, which were created before this one, and before HDF5 closes itself.
struct AtThreadEnd {
  Attachment* attachment = nullptr;
  ~AtThreadEnd() {
    try {
      if (attachment) attachment->end("");
    } catch (...) {  // an exception would end the program, which is about to end normally
    }
  }
};
thread_local AtThreadEnd at_thread_end;
Attachment* at_exit = nullptr;

}  // namespace

bool Attachment::begin() {
  std::call_once(begun_, [&] {
    try {
      options_.probe.rank = number_in_environment({"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK"}, 0);
      options_.probe.world_size =
          std::max(1, number_in_environment({"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}, 1));
      // Its ranks have nobody who would agree for them on what watched steps cost.
      if (options_.probe.world_size > 1 && options_.watch_every < 0)
        options_.watch_every = options_.watch_percent > 0 ? WatchSpacing::kLeast : 0;
      options_.probe.run_dir = claim(options_.probe.run_dir, options_.probe.rank);
      const bool records = options_.probe.level >= Level::trace;
      auto made = attach::AttachSession::start(options_, [&](attach::AttachSession& session) -> OpSink& {
        steps_ = std::make_unique<StepFinder>(session, records, [this](const auto& answer) { heed(answer); });
        return *steps_;
      });
      if (!made) {
        steps_.reset();
        return give_up("the probe is off: " + made.error().text());
      }
      session_ = std::move(made).value();
      thread_ = std::this_thread::get_id();
      at_thread_end.attachment = at_exit = this;
      (void)std::atexit([] { at_exit->end(""); });  // for a program that another thread ends
      say("attached; files go to " + shorter(options_.probe.run_dir));
      note(seen());
    } catch (const std::exception& problem) {
      steps_.reset();
      give_up(std::string("the probe is off: ") + problem.what());
    }
  });
  return session_ != nullptr;
}

void Attachment::give_up(const std::string& line) {
  note({{"off", line}});
  say(line);
}

void Attachment::begins(const torch::autograd::edge_list& roots, bool accumulates, bool again) {
  if (trains_here() && !ended_) steps_->backward_begins(roots, accumulates, again);
}

void Attachment::ends(bool accumulates, bool again) {
  if (trains_here() && !ended_) steps_->backward_ends(accumulates, again);
}

nlohmann::json Attachment::seen() const {
  return {{"run_dir", options_.probe.run_dir},
          {"steps", session_->steps_made()},
          {"incidents", session_->incidents()},
          {"spikes", session_->spikes()},
          {"carried_on", session_->carried_on()},
          {"muted", session_->muted()},
          {"skipped", 0},
          {"fell_back", nullptr}};
}

void Attachment::heed(const attach::StepAnswer& answer) {
  if (!session_) return;
  if (const std::string trouble = session_->trouble(); !trouble.empty()) say(trouble);
  const bool stop = (stops_.on_incident && answer.incident && answer.stops) ||
                    (stops_.on_forecast && answer.forecast) || (stops_.on_spike && answer.spike);
  tell(answer, stop ? "; stopped" : "");
  if (std::chrono::steady_clock::now() >= next_note_) {
    next_note_ = std::chrono::steady_clock::now() + kBetweenNotes;
    note(seen());
  }
  if (!stop) return;
  end("");
  std::exit(kExitOnIncident);
}

void Attachment::tell(const attach::StepAnswer& answer, const std::string& end) {
  if (answer.told.empty()) return;
  said_ += answer.incident ? 1 : 0;
  if (said_ <= kLines) note(seen());
  if (answer.incident && said_ > kLines) {
    if (said_ == kLines + 1)
      say("further incidents are listed in " + shorter(options_.probe.run_dir + "/manifest.json"));
    return;
  }
  say(text_of(answer.told) + end +
      (answer.file.empty() ? "" : "; see it with: nanquest-replay " + shorter(answer.file)));
}

void Attachment::end(const std::string& raised) {
  if (!session_ || std::exchange(ended_, true)) return;
  // If another thread ends the program, the state of the training thread can't be read.
  if (trains_here()) {
    steps_->program_ends();
    tell(session_->program_ends(raised), "");
  }
  nlohmann::json facts = seen();
  if (trains_here())
    if (const Status done = session_->finish(raised.empty() ? "the program ended" : "ended by " + raised);
        !done)
      say("the files are not complete: " + done.error().text());
  facts["ended"] = true;
  note(facts);
}

}  // namespace nanquest::program
