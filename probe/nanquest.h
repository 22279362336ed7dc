/// nanquest's public header: what a training program includes.
///
///     auto probe = nanquest::Probe::create({.run_dir = "run"}).value();
///     for (auto& p : model->named_parameters()) probe->watch_parameter(p.key(), p.value());
///     for (auto& b : model->named_buffers())    probe->watch_buffer(b.key(), b.value());
///     for (int64_t step = 0; step < steps; ++step) {
///       auto report = probe->step({.step = step, .lr = lr, .batch = {{"x", x}, {"y", y}}}, [&] {
///         auto loss = loss_of(model, x, y);
///         loss.backward();
///         return loss;
///       });
///       if (report.ok()) { scale_gradients(report.clip_coefficient(1.0)); optimizer.step(); }
///       // Not ok: the step never happened.
///       if (!report.summary.empty()) std::cerr << report.summary << '\n';
///     }
///
/// A run directory holds one run: what an earlier one left there is moved to `earlier/` inside it, unless
/// `resume`.
///
/// Also here, because a training loop needs the same: AtomicFile (checkpoints that are complete or absent),
/// the start of safetensors files, the hash of data, RunClaim (the directory, for a loop at Level::off) and
/// file_versions (for `--version`).
///
/// A failure inside the probe never reaches the training: the probe switches itself off with one
/// line in `report.summary` and `step` goes on running the closure.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include "probe/base/result.h"
#include "probe/numerics/hash.h"
#include "probe/observe/module_scope.h"
#include "probe/observe/nvtx.h"
#include "probe/observe/observer_pause.h"
#include "probe/observe/step_scope.h"
#include "probe/snapshot/atomic_file.h"
#include "probe/snapshot/model.h"
#include "probe/snapshot/run_claim.h"
#include "probe/snapshot/safetensors.h"
#include "probe/snapshot/version.h"
#include "probe/tensor/file_sources.h"

namespace nanquest {

/// How much the probe does per step. At every level gradients are cleared, unscaled and judged,
/// and a bad step is undone.
enum class Level : std::uint8_t {
  off,    ///< nothing is recorded or written
  guard,  ///< an incident is run once more from where it began, recorded: a good step costs next to nothing
  trace,  ///< every step's operations are recorded as they run: for steps that can't be run again alike
  watch,  ///< and every value that they write is looked at: damage that reaches neither loss nor gradients
          ///< too
};

/// What snapshots hold of weights that are, byte for byte, in the file that their memory was mapped from
/// (safetensors), or that they were copied to a device from (`came_from`), and do not train.
enum class FrozenWeights : std::uint8_t {
  reference,  ///< that file's path, the range, and the hash of its bytes
  embed,      ///< the weights: a file as much larger that needs no other
};

struct ProbeOptions {
  std::string run_dir = "nanquest-run";
  Level level = Level::guard;
  int history_rows = 256;      ///< steps kept in memory and put into every snapshot
  int check_state_every = 50;  ///< steps between checks of weights and moments; 0 = never
  int max_incidents = 16;      ///< snapshots written at most; further incidents are only counted
  /// An overflow of the loss scale above this scale is calibration, however often it comes in a row; at or
  /// below it, it is an incident.
  double min_loss_scale = 1.0;
  /// At Level::trace: so many steps at least stay on record without a gap (up to twice as many), and an
  /// incident's file holds them, for `nanquest-replay rewind`. Updates go through Probe::update then. 0:
  /// none.
  int tape = 0;
  double tape_memory_percent = 25;  ///< of the memory that is free, that they may take
  /// A folder: values of 1 MB and more are in files there instead, which have no name and are gone with the
  /// process, and may take as much of what is free on that disk. "": in memory.
  std::string tape_folder = {};
  FrozenWeights frozen_weights = FrozenWeights::reference;
  bool resume = false;  ///< continue the run that is in the directory
  std::int32_t rank = 0, world_size = 1;
  /// Of processes that make every step together: gives the least of what all of them give, once all have.
  /// Each of them then calls it at the same places, a few times a step: `step` has the same gate on all of
  /// them (the worst), a bad step is run again by all or by none, so that `compute` may hold collectives, and
  /// `update` ends alike on all. Not thrown from; the others would wait.
  std::function<std::int64_t(std::int64_t)> least = {};
  std::map<std::string, std::string> config = {};  ///< the run's settings, copied into manifest and snapshots
};

/// One step's inputs, by name.
struct StepInputs {
  std::int64_t step = 0;  ///< optimizer step, from 0
  double lr = 0;
  double loss_scale = 1;  ///< what `compute` multiplied the loss with before backward
  /// The norm that gradients are clipped to by StepReport::clip_coefficient, 0 for none: a rewind of the tape
  /// clips by the norm that gradients then have.
  double clip_norm = 0;
  std::vector<std::pair<std::string, at::Tensor>> batch = {};
  std::vector<std::string> sample_ids = {}, sample_texts = {};
};

/// What the gate saw. Gradients are unscaled in place when `gate` is ok.
struct StepReport {
  Gate gate = Gate::ok;  ///< never `spike`: that is a word of the history, the step is applied
  double loss = 0;       ///< as returned by the closure (unscaled), fp64
  double grad_norm = 0;  ///< global L2 norm of the unscaled gradients, accumulated in fp64
  double grad_amax = 0;
  std::uint64_t bad_gradients = 0;  ///< non-finite elements
  std::string incident;             ///< snapshot path, "" if none was written
  std::string summary;              ///< one line for a log; "" if there is nothing to say
  bool state_corrupt = false;       ///< weights, buffers or moments hold non-finite values
  bool ok() const { return gate == Gate::ok; }
  /// min(1, max_norm / (grad_norm + 1e-6)), as torch's clip_grad_norm_.
  double clip_coefficient(double max_norm) const;
};

class Probe {
 public:
  /// Makes the run directory and its manifest. Fails with `io` if it can't be written, `usage` if another
  /// process is writing a run there now. Where an earlier run was moved is in the first step's summary.
  static Result<std::unique_ptr<Probe>> create(ProbeOptions options);
  virtual ~Probe() = default;

  /// A leaf whose gradient the gate reads. Tied weights are known by the first name given. Layers of the
  /// history (`name` without its last component) are fixed by the first step.
  virtual void watch_parameter(const std::string& name, const at::Tensor& parameter) = 0;
  /// A tensor that a step writes in place (BatchNorm's statistics): it is copied before every step.
  virtual void watch_buffer(const std::string& name, const at::Tensor& buffer) = 0;
  /// Gives the optimizer's state tensors by name ("exp_avg.fc.weight"), asked for when needed.
  virtual void watch_optimizer(std::function<std::vector<std::pair<std::string, at::Tensor>>()> state) = 0;
  /// A random generator of the program's own; the default ones of the watched devices are known.
  virtual void watch_generator(at::Generator generator) = 0;
  /// Anything else that a step mutates: `save` is called before each step and returns what puts it back.
  virtual void watch_undo(std::function<std::function<void()>()> save) = 0;

  /// Runs `compute` (forward + backward; returns the unscaled loss) under the guard. Gradients are
  /// cleared before. If the gate is not ok the step is undone: RNG, buffers, gradients, and all that
  /// `watch_undo` saved are as before; for an incident `compute` is then, at Level::guard, run once more
  /// from there, recorded, written to a snapshot, and undone again.
  /// An exception of `compute` passes to the caller unchanged, after the step was undone.
  virtual StepReport step(const StepInputs& inputs, const std::function<at::Tensor()>& compute) = 0;

  /// After the optimizer: completes the history row. Weight norms and update ratios are measured at every
  /// step of a model of up to 2^20 elements on the CPU, else every `check_state_every` steps; moments
  /// are checked every `check_state_every` steps. Optional; false if weights, buffers or moments are found
  /// to hold non-finite values.
  virtual bool after_update(std::int64_t step) = 0;

  /// `work` (clip, optimizer) and `after_update` in one, for more than a measurement: an update that looks
  /// dangerous (at Level::watch: any; else: the rate is absurd, squares of the gradients come near the end of
  /// the format, or an update
  /// spoiled the state not long ago) is recorded. If it then leaves non-finite weights or moments, it is
  /// written as an incident, weights, moments and all that `step` would undo are put back, and the report
  /// says so (`state_corrupt` false: go on as after a bad step). An update that spoils the state without
  /// being on record is only said (`state_corrupt` true). Recording costs about as much as the step.
  /// Exceptions of `work` pass unchanged.
  virtual StepReport update(std::int64_t step, const std::function<void()>& work) = 0;

  /// Adds a named number to the history row of the current step (eval loss, tokens/s, …). New names
  /// are only taken before the first step.
  virtual void log(const std::string& name, double value) = 0;

  /// Seen so far, also those of which no snapshot was written (`max_incidents`, a full disk). Steps that only
  /// carry on the damage of an incident (weights that it left NaN) are none.
  virtual int incidents() const = 0;
  virtual Status finish(const std::string& outcome) = 0;  ///< flushes, closes, completes the manifest
};

}  // namespace nanquest
