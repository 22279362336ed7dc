#include "probe/step/incidents.h"

#include <algorithm>

#include "probe/step/one_line.h"

namespace nanquest {
namespace {

constexpr char kParameter[] = "parameter ", kBuffer[] = "buffer ", kOptimizerState[] = "optimizer state ";

}  // namespace

Incidents::Names Incidents::non_finite(TensorPass& pass, const ProgramState& state) {
  Names names;
  add_non_finite(pass, kParameter, state.parameters, names);
  add_non_finite(pass, kBuffer, state.buffers, names);
  add_non_finite(pass, kOptimizerState, state.optimizer, names);
  return names;
}

std::string Incidents::name_of(const std::string& origin, const std::string& tensor) {
  if (origin == "parameter") return kParameter + tensor;
  if (origin == "buffer") return kBuffer + tensor;
  if (origin == "optimizer_state") return kOptimizerState + tensor;
  return "";
}

std::string Incidents::began_with(std::int64_t step, Names bad, bool told) {
  beginning_known_ = true;
  from_the_beginning_ = {bad.begin(), bad.end()};
  if (bad.empty() || told) return "";
  return "step " + std::to_string(step) + ": " + bad.front() +
         (bad.size() > 1 ? " and " + std::to_string(bad.size() - 1) + " more" : "") +
         " held NaN or Inf before the first update, and neither loss nor gradients show it yet; a step that "
         "reads it will be an incident";
}

bool Incidents::since_beginning(const Names& bad) const {
  return !bad.empty() && std::all_of(bad.begin(), bad.end(), [&](const std::string& name) {
    return from_the_beginning_.count(name) > 0;
  });
}

void Incidents::begin(std::int64_t step, bool gate_failed, bool muted) {
  ++(muted ? muted_ : count_);
  last_muted_ = muted;
  gate_failed_ = gate_failed;
  harmless_ = false;
  last_ = step;
  last_file_.clear();
  damaged_.clear();
  arrives_.clear();
  carried_by_last_ = 0;
}

bool Incidents::may_write(std::string& why) {
  if (files_ < max_files_) {
    ++files_;
    return true;
  }
  why = "no snapshot: " + std::to_string(max_files_) + " were written already (max_incidents)";
  return false;
}

std::string Incidents::end(Gate gate, const std::string& file, const std::string& summary) {
  last_file_ = file;
  if (!log_) return "";
  const Status noted = log_->incident(last_, gate, file, summary, last_muted_);
  return noted ? "" : "manifest not written: " + one_line(noted.error().text());
}

bool Incidents::carries_on(const Names& bad) const {
  return std::any_of(bad.begin(), bad.end(), [&](const std::string& name) { return is_damaged(name); });
}

std::string Incidents::carry_on(std::int64_t step, const Names& bad) {
  carried_on_ += last_muted_ ? 0 : 1;
  if (log_) log_->carried_on(++carried_by_last_);
  if (carried_by_last_ > 1 || last_muted_) return "";
  const auto named = std::find_if(bad.begin(), bad.end(), [&](const auto& name) { return is_damaged(name); });
  std::string line = "step " + std::to_string(step) + ": ";
  line += named != bad.end() ? *named : bad.empty() ? "what arrives by " + arrives_ : *damaged_.begin();
  if (bad.size() > 1)
    line += " and " + std::to_string(bad.size() - 1) +
            (bad.size() > 2 ? " other weights, buffers and moments" : " other tensor");
  line += bad.size() > 1 ? " are" : " is";
  line += " still NaN or Inf from step " + std::to_string(last_);
  line += "; this and further steps that only carry that on are counted, not written";
  return line;
}

void Incidents::left_behind(const Names& bad) {
  damaged_.insert(bad.begin(), bad.end());
}

}  // namespace nanquest
