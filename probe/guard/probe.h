/// GuardedProbe: the guard level of nanquest::Probe (probe/nanquest.h), put together from the gate, the
/// undo log, the history and the capture by rewind. Private to the library; users see Probe.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "probe/capture/record.h"
#include "probe/guard/gate.h"
#include "probe/guard/run_log.h"
#include "probe/guard/step_record.h"
#include "probe/guard/undo_log.h"
#include "probe/nanquest.h"

namespace nanquest::guard {

class GuardedProbe final : public Probe {
 public:
  /// `log` is absent at Level::off: then steps are gated, and nothing is saved, undone or written.
  GuardedProbe(ProbeOptions options, std::optional<RunLog> log);
  ~GuardedProbe() override;

  void watch_parameter(const std::string& name, const at::Tensor& parameter) override;
  void watch_buffer(const std::string& name, const at::Tensor& buffer) override;
  void watch_optimizer(std::function<NamedTensors()> state) override;
  void watch_generator(at::Generator generator) override;
  void watch_undo(std::function<std::function<void()>()> save) override;
  StepReport step(const StepInputs& inputs, const std::function<at::Tensor()>& compute) override;
  bool after_update(std::int64_t step) override;
  void log(const std::string& name, double value) override;
  int incidents() const override { return incidents_; }
  Status finish(const std::string& outcome) override;

 private:
  /// Runs `work`; an exception of it switches the probe off instead of leaving.
  void safely(const char* doing, const std::function<void()>& work);
  bool on() const { return log_.has_value() && trouble_.empty(); }
  void begin(const StepInputs& inputs);
  void undo();
  Gate judge(const StepInputs& inputs, const GateResult& seen);
  void failed(const StepInputs& inputs, const std::function<at::Tensor()>& compute, StepReport& report);
  std::string capture(const StepInputs& inputs, const std::function<at::Tensor()>& compute,
                      StepReport& report);
  /// Name of the first parameter, buffer or moment that holds something non-finite, "" if none does.
  std::string corrupt_state();
  StepState state_of(const StepInputs& inputs) const;

  ProbeOptions options_;
  std::optional<RunLog> log_;
  NamedTensors parameters_, buffers_;
  std::function<NamedTensors()> optimizer_;
  GradientGate gate_;
  UndoLog undo_;
  StepRecord record_;
  TensorPass check_;
  std::string trouble_;  ///< why the probe is off, "" while it is on
  bool told_ = false, devices_known_ = false, finished_ = false, corrupt_ = false;
  int overflows_ = 0;  ///< of the loss scale, in a row
  int incidents_ = 0, captures_ = 0;
};

}  // namespace nanquest::guard
