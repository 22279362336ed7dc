/// RunHistory: the history of a run as the probe keeps it: the ring in memory, its copy on disk, and the
/// measurements of the weights. A row is begun by a step, completed by `after_update` or by the next step,
/// and then appended to the series. Only that buffered append touches the disk.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "probe/nanquest.h"
#include "probe/snapshot/series.h"
#include "probe/step/gate.h"
#include "probe/step/history.h"
#include "probe/step/run_bands.h"
#include "probe/step/weight_watch.h"

namespace nanquest {

class RunHistory {
 public:
  explicit RunHistory(const ProbeOptions& options);

  void watch_parameter(const std::string& name, const at::Tensor& parameter);
  /// For callers that must not keep parameters alive: from now on parameter `index`, in the order of
  /// `watch_parameter`, is this one; undefined ones are not measured.
  void bind(std::size_t index, const at::Tensor& parameter) {
    weights_.bind(index, parameter);
    note_device(parameter);
  }
  /// Sets a user column; false if the name is new after the first step.
  bool log(const std::string& name, double value);

  /// Completes the row before and begins this one. The first call fixes the columns and opens the series
  /// file; a failure of that file is reported once, by `complaint`.
  void begin(const StepInputs& inputs);
  /// What is gated next is another update of the same step (several optimizers) and joins its row: gradients
  /// add up, the loss stays. False if that step has no open row.
  bool join(std::int64_t step);
  /// Writes the gate's measurements into the row; `ok` steps are prepared for `after_update`. An `ok` step
  /// that begins a spike (RunBand) is written as `spike`. `clip_norm`: of the gradients before they were
  /// clipped, if that is known. `trained`: as RunBands.
  void gated(Gate gate, const GateResult& seen, const GradientGate& gradients,
             double clip_norm = StepFigures::kUnknown, std::uint64_t trained = 0);
  /// The same for an answer that comes when the update has been made: its row is still open. `joins`: what
  /// `join` said when the update began.
  void gated_later(bool joins, Gate gate, const GateResult& seen, const GradientGate& gradients,
                   double clip_norm = StepFigures::kUnknown, std::uint64_t trained = 0);
  /// The program has copied something into weights that no optimizer holds (StepFigures::copies).
  void copied() { ++copies_; }
  /// A step begins whose row `begin` starts later, at its gate: "seconds" runs from here.
  void step_starts() { step_started_ = now(); }
  /// What the probe costs now, for the rows that begin from here on (History's probe_share, watch_share).
  void costs(double probe_share, double watch_share) {
    probe_share_ = probe_share;
    watch_share_ = watch_share;
  }
  /// What the band says of the step that was gated last; `inside` for a step that it does not judge (a bad
  /// one, or the second update of a step).
  const BandNews& news() const { return news_; }
  /// The loss scale of the row, where `begin` did not know it yet.
  void scaled(double loss_scale);
  /// Changes the gate of the row, for an update that went wrong.
  void regate(Gate gate);
  /// Completes the row. False if a weight is non-finite.
  bool after_update(std::int64_t step);
  /// Whether the last `after_update` looked at all weights that it was given.
  bool measured() const { return measured_; }
  /// Completes the last row and closes the file.
  Status finish();

  /// Tables and sample ids for a snapshot.
  std::vector<SeriesTable> tables() const;
  std::vector<std::vector<std::string>> samples() const;
  /// What went wrong with the file since the last call, "" if nothing.
  std::string complaint() { return std::exchange(complaint_, {}); }

 private:
  void fill_gate(Gate gate, const GateResult& seen, const GradientGate& gradients, double clip_norm,
                 std::uint64_t trained);
  void open(std::int64_t first_step);
  void complete();
  void fill_weights();
  /// Reads the memory that the process takes, if the last reading is older than kMemoryEvery.
  void fill_memory();
  void note_device(const at::Tensor& parameter);
  double now() const;

  const ProbeOptions& options_;
  std::vector<std::string> layers_;
  std::vector<std::int32_t> layer_of_;  ///< per parameter, in the gate's order
  std::vector<std::pair<std::string, double>> user_;
  std::optional<History> history_;
  std::optional<SeriesWriter> series_;
  WeightWatch weights_;
  RunBands bands_;
  BandNews news_;
  double weights_norm_ = StepFigures::kUnknown, moved_ = StepFigures::kUnknown;  ///< as last measured
  std::vector<double> before_;                                                   ///< per layer, scratch
  std::int64_t copies_ = 0;
  std::string complaint_;
  double started_ = 0, step_started_ = 0, memory_read_ = 0;  ///< 0: not yet
  double probe_share_ = StepFigures::kUnknown, watch_share_ = StepFigures::kUnknown;
  std::vector<at::Device> devices_;  ///< of parameters, without the CPU
  bool no_peak_ = false;             ///< no allocator of `devices_` counts
  bool open_row_ = false, measuring_ = false, timed_ = false, frozen_ = false, joined_ = false,
       measured_ = false;
  int unanswered_ = 0;  ///< steps in a row that no after_update followed
};

}  // namespace nanquest
