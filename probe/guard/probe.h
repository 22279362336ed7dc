/// GuardedProbe: the guard level of nanquest::Probe (probe/nanquest.h), put together from the gate, the
/// undo log, the history and the capture by rewind. Private to the library; users see Probe.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "probe/nanquest.h"
#include "probe/record/record_session.h"
#include "probe/step/facts.h"
#include "probe/step/gate.h"
#include "probe/step/incident_writer.h"
#include "probe/step/judge.h"
#include "probe/step/run_history.h"
#include "probe/step/run_log.h"
#include "probe/step/state_check.h"
#include "probe/step/undo_log.h"

namespace nanquest::guard {

/// After an update that spoiled the state, this many updates are recorded: the same fault often comes back.
inline constexpr std::int64_t kRecordedAfterTrouble = 256;

/// A report in the making. What it says of the step is data until the report is handed out.
struct Answer : StepReport {
  Facts told;
  StepReport report() {
    summary = text_of(told);
    return *this;
  }
};

class GuardedProbe final : public Probe {
 public:
  /// `log` is absent at Level::off: steps are gated and undone, but nothing is recorded or written.
  GuardedProbe(ProbeOptions options, std::optional<RunLog> log);
  ~GuardedProbe() override;

  void watch_parameter(const std::string& name, const at::Tensor& parameter) override;
  void watch_buffer(const std::string& name, const at::Tensor& buffer) override;
  void watch_optimizer(std::function<NamedTensors()> state) override;
  void watch_generator(at::Generator generator) override;
  void watch_undo(std::function<std::function<void()>()> save) override;
  StepReport step(const StepInputs& inputs, const std::function<at::Tensor()>& compute) override;
  bool after_update(std::int64_t step) override;
  StepReport update(std::int64_t step, const std::function<void()>& work) override;
  void log(const std::string& name, double value) override;
  int incidents() const override { return writer_.count(); }
  Status finish(const std::string& outcome) override;

 private:
  /// Runs `work`; an exception switches the probe off and does not leave this function.
  void safely(const char* doing, const std::function<void()>& work);
  bool on() const { return trouble_.empty(); }
  bool recording() const { return log_.has_value() && on(); }
  void begin(const StepInputs& inputs);
  void undo();
  void failed(const StepInputs& inputs, const std::function<at::Tensor()>& compute, Answer& answer);
  /// At levels trace and watch: the step is recorded while it runs.
  bool records_steps() const { return options_.level >= Level::trace; }
  /// Starts or stops passing what runs between steps to the recorder, for the tape.
  void listen_for_tape();
  /// Gradients divided by the loss scale with an op that is recorded, rounded as the gate rounds.
  void unscale_on_record(double loss_scale);
  /// The update is over, if there was one. For the tape.
  void end_update();
  /// The gate. At levels that record, loss and gradients are described before they are unscaled; with a tape,
  /// after that.
  GateResult gate(const StepInputs& inputs, const at::Tensor& loss);
  /// The step's own recording as an incident's file. Called before the step is undone.
  void write_recorded(const StepInputs& inputs, Answer& answer);
  /// Levels that record: a step that spoiled a buffer is bad. A step that is undone leaves no spoiled buffer
  /// behind.
  void look_at_buffers(const StepInputs& inputs, Answer& answer);
  /// With several processes: the worst gate of any of them, for all of them.
  void agree_on_gate(const StepInputs& inputs, Answer& answer);
  /// With several processes: whether all of them would run the bad step again. Decided once per bad step.
  bool all_run_again(bool this_one);
  /// With several processes: an update that went wrong in one process counts as wrong in all of them.
  void agree_on_update(std::int64_t step, Answer& answer);
  void update_here(std::int64_t step, const std::function<void()>& work, Answer& answer);
  /// Level watch: a good step that hid damage is an incident.
  void look_for_hidden_damage(const StepInputs& inputs, Answer& answer);
  /// Runs the step again under the recorder and writes it.
  void capture(const StepInputs& inputs, const std::function<at::Tensor()>& compute, Answer& answer);
  /// Counts the incident of this step, in the writer and in the state check.
  void begin_incident(std::int64_t step);
  /// Writes the file of the incident that has begun, and adds what there is to say of it.
  void write(const IncidentWriter::Reason& reason, StepPages& pages, Answer& answer);
  StepState state_of(const StepInputs& inputs) const;
  /// Writes the incident that has begun into history and manifest.
  void note_incident(Answer& answer);
  /// Whether the update of this step is likely to spoil the state, so that recording it is worth its cost.
  bool suspicious(std::int64_t step) const;
  void recorded_update(std::int64_t step, const std::function<void()>& work, Answer& answer);
  /// What to say of an update that made `first_bad` non-finite.
  Fact spoiled(std::int64_t step, const std::string& first_bad) const;

  ProbeOptions options_;
  std::optional<RunLog> log_;
  NamedTensors parameters_, buffers_;
  std::function<NamedTensors()> optimizer_;
  GradientGate gate_;
  UndoLog undo_;
  Recorder recorder_;
  std::optional<ObserverSession> listening_;  ///< while there is a tape: also between steps
  bool update_is_next_ = false;               ///< the tape has the gate of this step, but not yet the end of
                                              ///< its update
  std::unique_ptr<RecordSession> recorded_;   ///< the step that is running
  RunHistory history_;
  StepJudge judge_;
  StateCheck check_;
  IncidentWriter writer_;
  Facts trouble_;  ///< why the probe is off, empty while it is on
  bool begun_ = false, told_ = false, devices_known_ = false, finished_ = false, corrupt_ = false;
  bool asked_again_ = false;  ///< `all_run_again` was called in this step
  StepInputs last_;           ///< number, rate and scale of the last gated step
  double last_amax_ = 0;
  Facts state_trouble_;
  std::int64_t record_updates_until_ = -1;  ///< updates of earlier steps that were recorded
};

}  // namespace nanquest::guard
