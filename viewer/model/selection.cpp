// The linked selection: what choosing an incident, an op, a layer, a step or a tensor shows elsewhere.
#include <algorithm>
#include <utility>

#include "viewer/model/session.h"
#include "viewer/model/smoothing.h"

namespace nanquest::viewer {
namespace {

bool has_layer(const History& history, const std::string& layer) {
  for (int s = 0; s < kStatistics; ++s)
    if (history.has(static_cast<Statistic>(s), layer)) return true;
  return false;
}

std::string layer_for(const History& history, std::string name) {
  for (; !name.empty();
       name.resize(name.find_last_of('.') == std::string::npos ? 0 : name.find_last_of('.'))) {
    if (has_layer(history, name)) return name;
    for (int s = 0; s < kStatistics; ++s)
      for (const std::string& layer : history.layers(static_cast<Statistic>(s)))
        if (layer.rfind(name + ".", 0) == 0) return layer;
  }
  return "";
}

}  // namespace

bool Session::has_layer(const std::string& layer) const {
  return viewer::has_layer(history(), layer);
}

bool Session::has_step(double step) const {
  const std::vector<double>& steps = history().steps();
  return std::binary_search(steps.begin(), steps.end(), step) ||
         std::any_of(incidents().begin(), incidents().end(),
                     [&](const IncidentEntry& e) { return static_cast<double>(e.files.step) == step; });
}

/// Another history may lack the selected statistic. One without rows decides nothing.
void Session::keep_statistic() {
  if (!history().empty() && !history().has(selection_.statistic))
    selection_.statistic = history().first_available();
}

std::string Session::layer_of(const std::string& name) const {
  return layer_for(history(), name);
}

void Session::restore(const Selection& before) {
  if (before.incident >= static_cast<int>(incidents().size())) return;
  if (before.incident != selection_.incident) select_incident(before.incident);
  const Selection fresh = selection_;
  selection_ = before;
  if (!selection_.layer.empty() && !has_layer(selection_.layer)) selection_.layer = fresh.layer;
  if (headroom().bits(selection_.place) == nullptr) selection_.place.clear();
  keep_statistic();
  if (incident() == nullptr) return;
  if (selection_.op >= static_cast<std::int32_t>(incident()->trace.size())) selection_.op = fresh.op;
  if (!incident()->holds(selection_.tensor)) show_tensor(fresh.tensor);
  const StoredTensor* tensor = stored_tensor();
  if (tensor == nullptr || selection_.element >= static_cast<std::int64_t>(element_count(tensor->shape)))
    selection_.element = -1;
  if (selection_.sample >= sample_count(incident()->doc)) selection_.sample = fresh.sample;
}

void Session::select_incident(int row) {
  selection_.incident = row;
  if (row < 0) return load_incident(row);
  const bool open = incident() != nullptr &&
                    incident()->reader.path() == incidents()[static_cast<std::size_t>(row)].files.snapshot;
  if (!open) load_incident(row);
  keep_statistic();
  selection_.op = kNone;
  show_tensor("");
  selection_.layer.clear();
  start_sample();
  selection_.step = static_cast<double>(incidents()[static_cast<std::size_t>(row)].files.step);
  if (incident() == nullptr) {
    if (verdict()) selection_.layer = layer_for(history(), verdict()->culprit.module);
    return;
  }
  select_op(incident()->doc.culprit.op);
  const std::string& bad = incident()->doc.culprit.tensor_name;
  for (const StoredTensor& tensor : incident()->tensors)
    if (!bad.empty() && tensor.name == bad) select_tensor(tensor.path);
  if (selection_.tensor.empty() && !incident()->tensors.empty())
    show_tensor(incident()->tensors.front().path);
}

void Session::select_op(std::int32_t op) {
  if (incident() == nullptr || op < 0 || op >= static_cast<std::int32_t>(incident()->trace.size())) return;
  selection_.op = op;
  selection_.step = static_cast<double>(incident()->doc.step);
  const std::string module = incident()->trace.line(OpId{op}).module;
  const std::string layer = module.empty() ? "" : layer_for(history(), module);
  if (!layer.empty()) selection_.layer = layer;
  if (const std::string data = incident()->trace.stored_data(OpId{op});
      !data.empty() && incident()->holds(data))
    show_tensor(data);
}

void Session::select_layer(const std::string& layer) {
  selection_.layer = layer;
  if (layer.empty() || incident() == nullptr) return;
  const StoredTensor* best = nullptr;
  for (const StoredTensor& tensor : incident()->tensors) {
    const bool belongs =
        tensor.group == "parameters" && (tensor.name == layer || tensor.name.rfind(layer + ".", 0) == 0);
    if (belongs && (best == nullptr || tensor.bytes > best->bytes)) best = &tensor;
  }
  if (best != nullptr) show_tensor(best->path);
}

void Session::select_smoothing(double weight) {
  selection_.smoothing = weight > 0 ? std::min(weight, kMostSmoothing) : 0;
}

void Session::select_place(const std::string& place) {
  if (!place.empty() && headroom().bits(place) == nullptr) return;
  selection_.place = place;
  const std::string module = module_of_place(place), layer = module.empty() ? "" : layer_of(module);
  if (!layer.empty()) selection_.layer = layer;
}

int Session::incident_to_open(double step) const {
  const auto is_of_step = [&](const IncidentEntry& e) { return static_cast<double>(e.files.step) == step; };
  if (entry() != nullptr && is_of_step(*entry())) return -1;  // one of several of that step may be open
  const auto found = std::ranges::find_if(incidents(), is_of_step);
  return found == incidents().end() ? -1 : static_cast<int>(found - incidents().begin());
}

void Session::select_step(double step) {
  selection_.step = step;
  if (const int row = incident_to_open(step); row >= 0) select_incident(row);
}

void Session::keep(const Session& older) {
  const bool same = entry() != nullptr && older.entry() != nullptr &&
                    entry()->files.snapshot == older.entry()->files.snapshot &&
                    entry()->files.step == older.entry()->files.step;
  Selection wanted = same || entry() == older.entry() ? older.selection_ : selection_;
  wanted.incident = selection_.incident;
  wanted.statistic = older.selection_.statistic;
  wanted.smoothing = older.selection_.smoothing;
  restore(wanted);
}

void Session::select_tensor(const std::string& path) {
  if (incident() == nullptr) return;
  for (const StoredTensor& tensor : incident()->tensors) {
    if (tensor.path != path) continue;
    show_tensor(path);
    if (const std::string layer = layer_for(history(), tensor.name);
        tensor.group == "parameters" && !layer.empty())
      selection_.layer = layer;
  }
}

}  // namespace nanquest::viewer
