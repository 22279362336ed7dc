#include "replay/rewind/run_again.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>
#include <vector>

#include "replay/rewind/once_more.h"
#include "replay/rewind/outside_writes.h"
#include "replay/rewind/tape_clip.h"
#include "replay/rewind/tape_hooks.h"
#include "replay/rewind/tape_updates.h"
#include "replay/trace/watch.h"

namespace nanquest {
namespace {

using Written = TapeHooks::Written;

/// Thrown to end a run that has nothing more to show.
struct RunIsOver {};

bool slows(const TapeRunner::Change& change) {
  return change.rate != 1 || change.warmup > 0 || change.most_rate > 0;
}

bool changes_anything(const TapeRunner::Change& change) {
  return slows(change) || change.clip > 0 || change.undo || change.number || !change.slots.empty() ||
         change.precision != Precision::as_recorded;
}

/// A boolean or an integer; or a loss scaler's mark that a gradient was not finite, which decides although it
/// is a real number.
bool decides(const TraceGraph& graph, const TapeRead& read) {
  if (read.whole) return true;
  const auto arguments = graph.arguments(OpId{read.op});
  if (arguments.empty() || !graph.slot(arguments[0].row)) return false;
  const OpId maker = graph.producer(arguments[0].row, OpId{read.op});
  return maker && graph.op(maker).name == "aten::_amp_foreach_non_finite_check_and_unscale_";
}

}  // namespace

/// One run: what is done at which op.
class Watched {
 public:
  Watched(const TapeRunner& runner, const TapeRunner::Change& change, RehearsedRun& run)
      : runner_(runner),
        tape_(runner.tape_),
        doc_(runner.doc()),
        graph_(*runner.graph_),
        change_(change),
        clip_(graph_, change.clip, changes_anything(change)),
        updates_(runner.replayer(), graph_, shortens_any(), slows(change),
                 [this](std::int64_t step, std::string what) { bad(step, std::move(what)); }),
        run_(run) {}

  /// False: the change can't be made, and `not_tried` says why.
  bool plan() {
    watch_decisions();  // before a step is counted: its last op may call it
    const std::vector<StepSpan> spans = spans_of(tape_);
    for (std::size_t s = 0; s < spans.size(); ++s) {
      const TapeStep& step = tape_.steps[s];
      if (spans[s].end <= spans[s].begin) continue;
      watch_loss(step);
      if (step.step == runner_.bad_step_) watch_gradients(step);
      if (step.end != kNone && step.end > step.gate) {
        if (const Status known = clip_.watch(spans[s], step, hooks_); !known)
          return refuse(known.error().message);
        const double warm = change_.warmup > 0 ? static_cast<double>(updates_.count() + 1) /
                                                     static_cast<double>(change_.warmup)
                                               : 1;
        const bool too_fast = change_.most_rate > 0 && step.rate > change_.most_rate;
        const double slower =
            change_.rate * std::min(warm, 1.0) * (too_fast ? change_.most_rate / step.rate : 1);
        if (const Status made = updates_.watch(step, slower * rate_again(step), hooks_); !made)
          return refuse(made.error().message);
      }
      at(spans[s].end - 1, [this, step](Written&) { step_is_over(step.step); });
    }
    const bool shortens = shortens_any();
    if (shortens || change_.undo) {
      const std::vector<OutsideWrite> others = outside_writes(graph_, tape_.steps, spans);
      if (shortens) updates_.keep(others, hooks_);
      if (change_.undo && !undo(others)) return false;
    }
    if (change_.number && !change_number(*change_.number)) return false;
    if ((slows(change_) || change_.clip > 0) && updates_.count() == 0)
      return refuse("no update of a weight is on the tape");
    return true;
  }

  void go(c10::Device device) {
    RunOptions options;
    options.precision = change_.precision;
    options.scan = false;
    options.device = device;
    options.edit.slot_edit = change_.slots;
    hooks_.put_into(options);
    if (change_.look) change_.look(options);
    RunResult result;
    try {
      result = runner_.replayer().run(options);
    } catch (const RunIsOver&) {
    }
    if (const std::string why = clip_.nothing_to_clip(); !why.empty() && run_.not_tried.empty())
      run_ = {.kind = run_.kind, .change = run_.change, .first_step = run_.first_step, .not_tried = why};
    const auto failed = std::find_if(result.ops.begin(), result.ops.end(),
                                     [](const OpOutcome& op) { return !op.ran && !op.error.empty(); });
    if (result.failed > 0 && failed != result.ops.end()) {
      run_.losses.clear();
      run_.not_tried = failed->error;
    }
  }

 private:
  bool refuse(std::string why) {
    run_.not_tried = std::move(why);
    return false;
  }

  /// Steps that are repeated after the incident (once_more) continue with the learning rate at the end of the
  /// tape: a program does not begin its warm-up again. Returns the factor of their updates for that.
  double rate_again(const TapeStep& step) const {
    const double of_end = runner_.rate_of_end_;
    const bool again = step.step > runner_.bad_step_ && step.rate > 0 && std::isfinite(step.rate);
    return again && of_end > 0 ? of_end / step.rate : 1;
  }

  bool shortens_any() const {
    return slows(change_) || std::any_of(tape_.steps.begin(), tape_.steps.end(),
                                         [this](const TapeStep& step) { return rate_again(step) != 1; });
  }

  void at(std::int32_t op, TapeHooks::Action action) { hooks_.after(op, std::move(action)); }

  std::int32_t slot_of(std::int32_t row) const { return doc_.tensors[static_cast<std::size_t>(row)].slot; }
  std::int32_t written_row(std::int32_t op, std::size_t entry) const {
    return doc_
        .written[static_cast<std::size_t>(doc_.ops[static_cast<std::size_t>(op)].first_written) + entry];
  }

  [[noreturn]] void bad(std::int64_t step, std::string what) {
    note_left_out(step);
    run_.failed_step = step;
    run_.failure = std::move(what);
    throw RunIsOver();
  }

  void watch_loss(const TapeStep& step) {
    if (step.loss_op == kNone) return;
    at(step.loss_op, [this, step](Written& written) {
      for (std::size_t k = 0; k < written.size(); ++k)
        if (written_row(step.loss_op, k) == step.loss && written[k].defined() && written[k].numel() == 1)
          loss_ = written[k].to(at::kDouble).item<double>();
      if (!std::isfinite(loss_))
        bad(step.step, std::isnan(loss_) ? "the loss is NaN" : "the loss is infinite");
    });
  }

  void watch_gradients(const TapeStep& step) {
    for (const std::int32_t row : doc_.gradients) {
      const SlotId slot = graph_.slot(TensorId{row});
      if (!slot) continue;
      const OpId last = graph_.producer(TensorId{row}, OpId{step.gate});
      if (!last) continue;
      at(last.row(), [this, step, slot, op = last.row()](Written& written) {
        for (std::size_t k = 0; k < written.size(); ++k)
          if (written[k].defined() && slot_of(written_row(op, k)) == slot.row() &&
              trace::badness(written[k]).any)
            bad(step.step, "a gradient is not finite");
      });
    }
  }

  /// False: no update takes such a number.
  bool change_number(const NumberChange& number) {
    const std::vector<NumberPlace> places = places_of(tape_.steps, doc_, number.name);
    for (const NumberPlace& place : places)
      hooks_.before(place.op, [number, position = place.position](std::vector<c10::IValue>& stack) {
        if (position < stack.size() && stack[position].isScalar())
          stack[position] = number.of(stack[position].toScalar().to<double>());
      });
    return !places.empty() || refuse("no operation of an update takes " + number.name +
                                     " as a number of its own (fused optimizers do): nanquest rehearse");
  }

  /// False: the step writes nothing there.
  bool undo(const std::vector<OutsideWrite>& others) {
    const auto last = std::find_if(tape_.steps.begin(), tape_.steps.end(),
                                   [this](const TapeStep& step) { return step.step == runner_.bad_step_; });
    const auto once = static_cast<std::size_t>(last - tape_.steps.begin()) + 1;
    bool any = false;
    for (const OutsideWrite& other : others) {
      const std::size_t first = other.step < once ? other.step : other.step - once;
      if (tape_.steps[first].step != *change_.undo) continue;
      any = true;
      take_back(graph_, other, hooks_);
    }
    return any || refuse("step " + std::to_string(*change_.undo) +
                         " writes no weight and no moment outside of its update");
  }

  /// Nothing is known of a step that was left out.
  void note_left_out(std::int64_t step) {
    if (runner_.left_out_ && step > *runner_.left_out_ && !std::exchange(told_left_out_, true))
      run_.losses.push_back(std::nan(""));
  }

  void step_is_over(std::int64_t step) {
    note_left_out(step);
    run_.losses.push_back(std::exchange(loss_, std::nan("")));
  }

  void watch_decisions() {
    for (const TapeRead& read : tape_.reads) {
      if (!decides(graph_, read)) continue;
      hooks_.before(read.op, [this, read](std::vector<c10::IValue>& stack) {
        if (stack.empty() || !stack[0].isTensor()) return;
        const at::Tensor& asked = stack[0].toTensor();
        double now = std::nan("");
        if (stack.size() > 1 && stack[1].isTensor())
          now = asked.equal(stack[1].toTensor()) ? 1 : 0;
        else if (asked.defined() && asked.numel() == 1)
          now = asked.to(at::kDouble).item<double>();
        else
          return;
        otherwise_ = read.whole ? now != read.value : (now == 0) != (read.value == 0);
      });
      at(read.op, [this, read](Written&) {
        if (!otherwise_) return;
        run_.ended_itself = true;
        run_.failure = "at step " + std::to_string(run_.end()) +
                       " the program would have decided otherwise (" +
                       doc_.ops[static_cast<std::size_t>(read.op)].name + ")";
        throw RunIsOver();
      });
    }
  }

  const TapeRunner& runner_;
  const TapeDoc& tape_;
  const SnapshotDoc& doc_;
  const TraceGraph& graph_;
  const TapeRunner::Change& change_;
  TapeClip clip_;
  TapeUpdates updates_;
  RehearsedRun& run_;
  TapeHooks hooks_;
  double loss_ = std::nan("");
  bool otherwise_ = false, told_left_out_ = false;
};

Result<TapeRunner> TapeRunner::make(TapeDoc tape, const std::map<std::string, at::Tensor>& data,
                                    std::int64_t bad_step, std::optional<std::int64_t> left_out) {
  Result<Replayer> replayer = Replayer::from_memory(std::exchange(tape.trace, {}), data, /*look=*/false);
  if (!replayer) return replayer.error();
  TapeRunner runner(std::move(replayer).value(), std::move(tape));
  runner.graph_ = std::make_shared<const TraceGraph>(runner.doc());
  runner.bad_step_ = bad_step;
  runner.left_out_ = left_out;
  for (const TapeStep& step : runner.tape_.steps)
    if (step.step <= bad_step && step.rate > 0 && std::isfinite(step.rate)) runner.rate_of_end_ = step.rate;
  return runner;
}

void TapeRunner::run(const Change& change, c10::Device device, RehearsedRun& run) const try {
  if (tape_.steps.empty()) {
    run.not_tried = "the tape holds no step";
    return;
  }
  run.first_step = tape_.steps.front().step;
  Watched watched(*this, change, run);
  if (watched.plan()) watched.go(device);
} catch (const std::exception& e) {
  run.losses.clear();
  run.not_tried = e.what();
}

}  // namespace nanquest
