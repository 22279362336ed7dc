#include "probe/trace/spike_note.h"

#include <cmath>
#include <cstdio>
#include <sstream>

namespace nanquest {
namespace {

constexpr std::string_view kKey = "spike.";

std::string key(std::string_view name) {
  return std::string(kKey).append(name);
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

std::string short_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

std::string joined(const SpikeFigure& f) {
  std::string text(f.out ? "1" : "0");
  for (const double value : {f.value, f.low, f.middle, f.high, f.back, f.edge}) text += " " + number(value);
  return text;
}

std::optional<SpikeFigure> figure_of(const SnapshotDoc& doc, std::string_view name) {
  const auto entry = doc.environment.find(key(name));
  if (entry == doc.environment.end()) return std::nullopt;
  std::istringstream in(entry->second);
  SpikeFigure f;
  in >> f.out >> f.value >> f.low >> f.middle >> f.high >> f.back >> f.edge;
  const bool sound =
      in && std::isfinite(f.value) && std::isfinite(f.back) && std::isfinite(f.edge) && f.back <= f.edge;
  return sound ? std::optional(f) : std::nullopt;
}

}  // namespace

void note_spike(SnapshotDoc& doc, const SpikeNote& note) {
  doc.environment[key("kind")] = note.diverged ? "diverged" : "spike";
  doc.environment[key("since")] = std::to_string(note.since);
  if (note.loss) doc.environment[key("loss")] = joined(*note.loss);
  if (note.norm) doc.environment[key("grad_norm")] = joined(*note.norm);
}

std::optional<SpikeNote> spike_note(const SnapshotDoc& doc) {
  const auto kind = doc.environment.find(key("kind")), since = doc.environment.find(key("since"));
  if (kind == doc.environment.end() || since == doc.environment.end()) return std::nullopt;
  SpikeNote note;
  note.diverged = kind->second == "diverged";
  std::istringstream in(since->second);
  if (!(in >> note.since)) return std::nullopt;
  note.loss = figure_of(doc, "loss");
  note.norm = figure_of(doc, "grad_norm");
  if (!(note.loss && note.loss->out) && !(note.norm && note.norm->out)) return std::nullopt;
  return note;
}

bool tells_of_spike(std::string_view name) {
  return name.starts_with(kKey);
}

std::string figure_text(const SpikeFigure& f) {
  return short_number(f.value) + ", usually " + short_number(f.low) + " to " + short_number(f.high);
}

std::string on_record_text(const SnapshotDoc& doc) {
  if (doc.gate != Gate::spike) return "";
  const auto note = spike_note(doc);
  if (!note) return "its loss or gradient norm was far out of the run's usual range";
  std::string text;
  if (note->loss && note->loss->out) text = "the loss was " + figure_text(*note->loss);
  if (note->norm && note->norm->out)
    text += (text.empty() ? "" : "; ") + ("the gradient norm was " + figure_text(*note->norm));
  if (note->diverged)
    text += "; it left its range at step " + std::to_string(note->since) + " and has not come back";
  return text;
}

}  // namespace nanquest
