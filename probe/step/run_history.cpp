#include "probe/step/run_history.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "probe/snapshot/run_dir.h"
#include "probe/step/memory_use.h"
#include "probe/step/one_line.h"
#include "probe/trace/names.h"

namespace nanquest {
namespace {

constexpr double kMemoryEvery = 0.25;  // seconds: reading it takes microseconds

}  // namespace

RunHistory::RunHistory(const ProbeOptions& options)
    : options_(options), weights_(options.check_state_every) {}

double RunHistory::now() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void RunHistory::watch_parameter(const std::string& name, const at::Tensor& parameter) {
  weights_.watch(parameter);
  note_device(parameter);
  if (frozen_) {  // columns can't change any more: guarded, but not in the history
    layer_of_.push_back(-1);
    return;
  }
  const std::string layer(layer_of(name));
  const auto found = std::find(layers_.begin(), layers_.end(), layer);
  layer_of_.push_back(static_cast<std::int32_t>(found - layers_.begin()));
  if (found == layers_.end()) layers_.push_back(layer);
}

void RunHistory::note_device(const at::Tensor& parameter) {
  if (!parameter.defined() || parameter.is_cpu() || std::ranges::count(devices_, parameter.device()) > 0) return;
  devices_.push_back(parameter.device());
}

bool RunHistory::log(const std::string& name, double value) {
  if (frozen_) return history_ && history_->set_user(name, value);
  const auto found = std::find_if(user_.begin(), user_.end(), [&](const auto& u) { return u.first == name; });
  if (found != user_.end())
    found->second = value;
  else
    user_.emplace_back(name, value);
  return true;
}

void RunHistory::open(std::int64_t first_step) {
  frozen_ = true;
  std::vector<std::string> columns;
  for (const auto& [name, value] : user_) columns.push_back(name);
  history_.emplace(options_.history_rows, layers_, columns);
  before_.resize(layers_.size());
  if (layers_.empty()) return;  // the program ends before any weight is known: one row, which its incident has
  Result<SeriesWriter> series =
      SeriesWriter::create(series_path(options_.run_dir, options_.rank), history_->columns(), options_.resume,
                           static_cast<double>(first_step));
  if (series)
    series_.emplace(std::move(series).value());
  else
    complaint_ = "no series is written: " + one_line(series.error().text());
}

void RunHistory::begin(const StepInputs& inputs) {
  complete();
  if (!frozen_) open(inputs.step);
  if (!history_) return;
  started_ = step_started_ > 0 ? std::exchange(step_started_, 0) : now();
  history_->begin_row();
  history_->set(Scalar::step, static_cast<double>(inputs.step));
  history_->set(Scalar::lr, inputs.lr);
  history_->set(Scalar::scale, inputs.loss_scale);
  history_->set(Scalar::probe_share, probe_share_);
  history_->set(Scalar::watch_share, watch_share_);
  fill_memory();
  history_->set_samples(inputs.sample_ids);
  for (const auto& [name, value] : user_) history_->set_user(name, value);
  user_.clear();
  open_row_ = true;
  timed_ = measuring_ = joined_ = false;
}

void RunHistory::fill_memory() {
  const double time = now();
  if (memory_read_ > 0 && time - memory_read_ < kMemoryEvery) return;
  memory_read_ = time;
  history_->set(Scalar::resident, resident_bytes());
  if (devices_.empty() || no_peak_) return;
  const double peak = device_peak_bytes(devices_);
  history_->set(Scalar::device_peak, peak);
  no_peak_ = std::isnan(peak);  // asking an allocator that does not count raises, which takes long
}

bool RunHistory::join(std::int64_t step) {
  joined_ = open_row_ && static_cast<std::int64_t>(history_->get(Scalar::step)) == step;
  return joined_;
}

void RunHistory::scaled(double loss_scale) {
  if (open_row_) history_->set(Scalar::scale, loss_scale);
}

void RunHistory::gated_later(bool joins, Gate gate, const GateResult& seen, const GradientGate& gradients,
                             double clip_norm, std::uint64_t trained) {
  news_ = {};
  if (!open_row_) return;
  joined_ = joins;
  fill_gate(gate, seen, gradients, clip_norm, trained);
}

void RunHistory::gated(Gate gate, const GateResult& seen, const GradientGate& gradients, double clip_norm,
                       std::uint64_t trained) {
  news_ = {};
  if (!open_row_) return;
  fill_gate(gate, seen, gradients, clip_norm, trained);
  // A loop that never calls after_update need not pay for the samples.
  const auto step = static_cast<std::int64_t>(history_->get(Scalar::step));
  measuring_ = gate == Gate::ok && unanswered_ < 2 && weights_.due(step);
  if (gate == Gate::ok) ++unanswered_;
  if (measuring_) weights_.before_update();
}

void RunHistory::fill_gate(Gate gate, const GateResult& seen, const GradientGate& gradients, double clip_norm,
                           std::uint64_t trained) {
  const auto before = [&](Scalar column) { return joined_ ? history_->get(column) : 0; };
  double word = std::max(before(Scalar::gate), static_cast<double>(gate));
  if (gate == Gate::ok && !joined_)
    news_ = bands_.judge(trained, {.step = static_cast<std::int64_t>(history_->get(Scalar::step)),
                                   .loss = seen.loss,
                                   .norm = std::isnan(clip_norm) ? seen.norm : clip_norm,
                                   .rate = history_->get(Scalar::lr),
                                   .weights = weights_norm_,
                                   .moved = moved_,
                                   .copies = copies_});
  if (news_.kind == BandNews::spike) word = static_cast<double>(Gate::spike);
  // A spike has the lowest priority: a later update of the step replaces it.
  if (joined_ && before(Scalar::gate) == static_cast<double>(Gate::spike) && gate != Gate::ok)
    word = static_cast<double>(gate);
  history_->set(Scalar::gate, word);
  if (!joined_) history_->set(Scalar::loss, seen.loss);
  history_->set(Scalar::grad_norm, std::hypot(before(Scalar::grad_norm), seen.norm));
  history_->set(Scalar::grad_amax, std::max(before(Scalar::grad_amax), seen.amax));
  history_->set(Scalar::bad_gradients, before(Scalar::bad_gradients) + static_cast<double>(seen.non_finite));
  const std::span<double> norms = history_->row(LayerTable::grad_norm);
  const std::span<double> largest = history_->row(LayerTable::grad_amax);
  for (double& norm : norms) norm *= norm;
  for (std::size_t i = 0; i < layer_of_.size(); ++i) {
    if (layer_of_[i] < 0) continue;
    const std::size_t layer = static_cast<std::size_t>(layer_of_[i]);
    norms[layer] += gradients.stats(i).sum_squares;
    largest[layer] = std::max(largest[layer], gradients.stats(i).amax);
  }
  for (double& norm : norms) norm = std::sqrt(norm);
}

void RunHistory::fill_weights() {
  const std::span<double> norms = history_->row(LayerTable::weight_norm);
  const std::span<double> largest = history_->row(LayerTable::weight_amax);
  const std::span<double> ratios = history_->row(LayerTable::update_ratio);
  // Layers that were not measured keep their values.
  std::fill(before_.begin(), before_.end(), -1.0);
  double squares = 0, moved = 0, before = 0;  // of all weights
  for (std::size_t i = 0; i < layer_of_.size(); ++i) {
    if (layer_of_[i] < 0 || !weights_.measured(i)) continue;
    const std::size_t layer = static_cast<std::size_t>(layer_of_[i]);
    if (before_[layer] < 0) before_[layer] = norms[layer] = largest[layer] = ratios[layer] = 0;
    norms[layer] += weights_.stats(i).sum_squares;
    largest[layer] = std::max(largest[layer], weights_.stats(i).amax);
    ratios[layer] += weights_.moved_squares(i);
    before_[layer] += weights_.before_squares(i);
    squares += weights_.stats(i).sum_squares;
    moved += weights_.moved_squares(i);
    before += weights_.before_squares(i);
  }
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    if (before_[l] < 0) continue;
    norms[l] = std::sqrt(norms[l]);
    ratios[l] = before_[l] == 0 ? 0 : std::sqrt(ratios[l] / before_[l]);
  }
  weights_norm_ = std::sqrt(squares);
  moved_ = before > 0 ? std::sqrt(moved / before) : StepFigures::kUnknown;
  history_->set(Scalar::measured, 1);
}

bool RunHistory::after_update(std::int64_t step) {
  if (!open_row_ || static_cast<std::int64_t>(history_->get(Scalar::step)) != step) return true;
  unanswered_ = 0;
  bool finite = true;
  measured_ = std::exchange(measuring_, false);
  if (measured_) {
    weights_.after_update();
    fill_weights();
    finite = weights_.non_finite() == 0;
  }
  history_->set(Scalar::seconds, now() - started_);
  timed_ = true;
  return finite;
}

void RunHistory::regate(Gate gate) {
  if (open_row_) history_->set(Scalar::gate, static_cast<double>(gate));
}

void RunHistory::complete() {
  if (!std::exchange(open_row_, false)) return;
  if (!timed_)
    history_->set(Scalar::seconds, (step_started_ > started_ ? step_started_ : now()) - started_);
  if (!series_) return;
  const Status appended = series_->append(history_->current());
  if (appended) return;
  complaint_ = "the series ends here: " + one_line(appended.error().text());
  series_.reset();
}

Status RunHistory::finish() {
  complete();
  if (!series_) return {};
  Status flushed = series_->flush();
  series_.reset();
  return flushed;
}

std::vector<SeriesTable> RunHistory::tables() const {
  return history_ ? history_->tables() : std::vector<SeriesTable>{};
}

std::vector<std::vector<std::string>> RunHistory::samples() const {
  return history_ ? history_->samples() : std::vector<std::vector<std::string>>{};
}

}  // namespace nanquest
