// What the ladder's answers mean to this loop, and what a failure does: what is said, saved and left out.
#include <c10/util/Exception.h>

#include <new>
#include <string_view>
#include <utility>

#include "trainer/loop/trainer.h"

namespace nanquest::trainer {

namespace {

/// The file that rank `other` writes where this one writes `path`; `path` if it is not called like one of a
/// rank.
std::string file_of_rank(std::string path, std::int32_t own, std::int32_t other) {
  const std::string mark = ".r" + std::to_string(own) + ".";
  const std::size_t at = path.rfind(mark);
  if (other >= 0 && at != std::string::npos)
    path.replace(at, mark.size(), ".r" + std::to_string(other) + ".");
  return path;
}

bool out_of_memory(const std::exception& e) {
  return dynamic_cast<const std::bad_alloc*>(&e) != nullptr ||
         dynamic_cast<const c10::OutOfMemoryError*>(&e) != nullptr ||
         // How the CPU's allocator says it.
         std::string_view(e.what()).find("can't allocate memory") != std::string_view::npos;
}

std::string first_line(const std::exception& e) {
  const auto* torch = dynamic_cast<const c10::Error*>(&e);
  const std::string text = torch != nullptr ? torch->what_without_backtrace() : e.what();
  return text.substr(0, text.find('\n'));
}

}  // namespace

LadderListener Trainer::ladder_listener() {
  return {.say =
              [this](const std::string& text) {
                // The first line is that of the incident: the rank that it began on has more to say of it.
                if (std::exchange(whose_, -1) == ranks_->rank()) return say_own(text);
                say(text);
              },
          .incident = [this](const StepReport& report) { note_incident(report); },
          .complete =
              [this](TrainState& state) {
                identity_.note_in(state);
                state.story = story();
              }};
}

void Trainer::note_incident(const StepReport& report) {
  if (!report.state_corrupt) save_before_policy();
  if (summary_.first_incident_step < 0) {
    summary_.first_incident_step = counters_.optimizer_step;
    summary_.loss_at_incident = mean(recent_losses_);
  }
  const std::string bad = rank_work_.bad_ranks(whose_);
  if (!bad.empty()) say(bad);
  if (!report.incident.empty())
    summary_.incidents.push_back(file_of_rank(report.incident, ranks_->rank(), whose_));
  tell_failed(report);
}

Trainer::Next Trainer::follow(const Ladder::Answer& answer, const Batch* batch) {
  if (answer.dropped && batch != nullptr) {
    batches_.drop(batch->ids, answer.why);
    pass_batch();
  }
  if (answer.went_back) went_back();
  return answer.next == Ladder::Next::stop ? stop(answer.why) : Next::advance;
}

void Trainer::went_back() {
  consistent_ = true;
  checkpoints_.saved_step = -1;  // what is at that step from now on is something else
  metrics_.cut(counters_.optimizer_step);
}

Trainer::Next Trainer::stop(const std::string& why) {
  stopped_ = true;
  summary_.outcome = "stopped: " + why;
  say(summary_.outcome);
  return Next::stop;
}

void Trainer::tell_failed(const StepReport& report) const {
  if (listener_.on_step) listener_.on_step(event_of(report));
}

Status Trainer::write_state() {
  return checkpoints_.write(ladder_.present());
}

void Trainer::save_before_policy() {
  // Batches skipped in a row leave the weights alone: one file serves them all.
  if (checkpoints_.saved_step == counters_.optimizer_step || !learned_.finite(true)) return;
  if (Status s = write_state(); !s) say("no checkpoint before the policy acts: " + s.error().text());
}

Error Trainer::failed(const std::exception& e) {
  const std::string at = "step " + std::to_string(counters_.optimizer_step) + ": ", text = first_line(e);
  const bool memory = out_of_memory(e);
  try {
    save_before_ending();
  } catch (const std::exception& again) {
    say("nothing could be saved: " + first_line(again));
  }
  if (memory)
    return {ErrorCode::internal, at + "out of memory: " + text,
            "--accumulation computes a batch in smaller parts; with --resume as --set accumulation=N"};
  const bool torch = dynamic_cast<const c10::Error*>(&e) != nullptr;
  return {ErrorCode::internal, at + (torch ? "LibTorch refused an operation: " : "") + text, ""};
}

void Trainer::save_before_ending() {
  optimizer_->clear_gradients();
  // What failed in the middle of an update has moved some weights and not others.
  const bool as_it_is = consistent_ && learned_.finite(true);
  Status saved;
  if (as_it_is) {
    saved = write_state();
  } else if (const TrainState* kept = ladder_.newest();
             kept != nullptr && kept->counters.data_steps > checkpoints_.saved_batches) {
    saved = checkpoints_.write(*kept);
  }
  if (!saved) {
    say("nothing could be saved: " + saved.error().text());
  } else if (!checkpoints_.newest_file.empty()) {
    say("saved: " + checkpoints_.newest_file + "; --resume goes on from step " +
        std::to_string(checkpoints_.saved_step));
  }
}

Status Trainer::write_weights(const std::string& name, std::map<std::string, std::string> facts,
                              std::string& path) {
  facts["step"] = std::to_string(counters_.optimizer_step);
  return checkpoints_.write_weights(name, *task_, facts, path);
}

}  // namespace nanquest::trainer
