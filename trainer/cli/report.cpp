#include "trainer/cli/report.h"

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "trainer/config/short_number.h"

namespace nanquest::trainer {
namespace {

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4f", value);
  return text;
}

/// Whether no update was ever made, so that there is no loss to report.
bool learned_nothing(const Summary& s) {
  return s.counters.tokens == 0;
}

}  // namespace

int fail(const Error& error) {
  std::fprintf(stderr, "nanquest-trainer: %s\n", error.text().c_str());
  return exit_code(error.code);
}

std::string summary_as_text(const Summary& s) {
  const Counters& c = s.counters;
  std::string text = "outcome          " + s.outcome + "\n";
  text += "steps            " + std::to_string(c.optimizer_step) + " updates, " + std::to_string(c.skipped) +
          " batches skipped, " + std::to_string(c.rollbacks) + " rollbacks, in " + number(s.seconds) + " s\n";
  if (learned_nothing(s)) {
    text += "loss             none: no step was learned from\n";
  } else {
    text += "loss             " + number(s.first_loss) + " at the start, ";
    if (s.first_incident_step >= 0)
      text += number(s.loss_at_incident) + " before the incident at step " +
              std::to_string(s.first_incident_step) + ", ";
    text += number(s.last_loss) + " at the end" +
            (s.averaged > 1 ? " (mean of the last " + std::to_string(s.averaged) + ")" : "") + "\n";
  }
  if (c.best_eval != 0)
    text += "held-out loss    " + number(s.eval_loss) + ", best " + number(s.best_eval_loss) + "\n";
  // The first was reported above.
  for (std::size_t i = 1; i < s.held_out.size(); ++i)
    text += (i == 1 ? "held-out         " : ", ") + s.held_out[i].name + " " + number(s.held_out[i].value);
  if (s.held_out.size() > 1) text += "\n";
  text += "precision        " + s.final_format + " at the end" +
          (c.fell_back ? " (fell back), learning rate times " + short_number(c.backoff) : "") + "\n";
  if (!s.scale_history.empty())
    text += "loss scale       " + std::to_string(s.scale_history.size()) + " changes, now " +
            number(s.final_scale) + "\n";
  for (const std::string& path : s.incidents) text += "snapshot         " + path + "\n";
  if (!s.final_weights.empty()) text += "final weights    " + s.final_weights + "\n";
  if (!s.best_weights.empty()) text += "best weights     " + s.best_weights + "\n";
  if (!s.learned.empty()) text += "learned          " + s.learned + "\n";
  if (!s.learned_command.empty()) text += "try it           " + s.learned_command + "\n";
  return text;
}

std::string summary_as_json(const Summary& s) {
  const Counters& c = s.counters;
  const auto finite = [](double v) { return std::isfinite(v) ? nlohmann::json(v) : nlohmann::json(nullptr); };
  nlohmann::ordered_json j;
  j["format"] = "nanquest.training";
  j["version"] = 1;
  j["outcome"] = s.outcome;
  j["exit_code"] = static_cast<int>(s.exit);
  j["steps"] = c.optimizer_step;
  j["data_steps"] = c.data_steps;
  j["skipped"] = c.skipped;
  j["rollbacks"] = c.rollbacks;
  j["incidents"] = c.incidents;
  j["tokens"] = c.tokens;
  j["first_incident_step"] =
      s.first_incident_step >= 0 ? nlohmann::json(s.first_incident_step) : nlohmann::json(nullptr);
  const auto loss = [&](double v) { return learned_nothing(s) ? nlohmann::json(nullptr) : finite(v); };
  j["loss"] = {{"start", loss(s.first_loss)},
               {"before_incident", loss(s.loss_at_incident)},
               {"end", loss(s.last_loss)}};
  j["eval_loss"] = c.best_eval != 0
                       ? nlohmann::json{{"last", finite(s.eval_loss)}, {"best", finite(s.best_eval_loss)}}
                       : nlohmann::json(nullptr);
  auto& held_out = j["held_out"] = nlohmann::json::object();
  for (const Metric& metric : s.held_out) held_out[metric.name] = finite(metric.value);
  j["fell_back"] = c.fell_back;
  j["backoff"] = c.backoff;
  j["lr"] = s.final_lr;
  j["precision"] = s.final_format;
  j["loss_scale"] = finite(s.final_scale);
  auto& history = j["loss_scale_history"] = nlohmann::json::array();
  for (const ScaleChange& change : s.scale_history)
    history.push_back({{"step", change.step}, {"from", change.from}, {"to", change.to}});
  j["snapshots"] = s.incidents;
  j["skipped_samples"] = s.skipped_samples;
  j["files"] = {
      {"final", s.final_weights}, {"best", s.best_weights}, {"state", s.state_file}, {"learned", s.learned}};
  j["seconds"] = s.seconds;
  return j.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace nanquest::trainer
