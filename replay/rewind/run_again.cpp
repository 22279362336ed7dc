#include "replay/rewind/run_again.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <sstream>
#include <stdexcept>
#include <utility>
#include <vector>

#include "probe/numerics/clip.h"
#include "replay/rewind/gradients.h"
#include "replay/rewind/once_more.h"
#include "replay/rewind/outside_writes.h"
#include "replay/trace/watch.h"

namespace nanquest {
namespace {

using Written = std::vector<at::Tensor>;
using Action = std::function<void(Written&)>;

/// Thrown out of a run that has nothing more to tell.
struct RunIsOver {};

/// All of the memory that `part` lies in.
at::Tensor whole_memory(const at::Tensor& part) {
  const auto count = static_cast<std::int64_t>(part.storage().nbytes() / part.element_size());
  return at::empty({0}, part.options()).set_(part.storage(), 0, {count}, {1});
}

/// "aten::copy_" and its like: a weight that is given what another memory holds.
bool copies(const OpRow& op) {
  return op.name == "aten::copy_" || op.name == "aten::_foreach_copy_";
}

/// A truth value or an integer; or a loss scaler's mark that a gradient was not finite, by which it decides
/// although that is a real number.
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
        run_(run) {}

  /// False: the change can't be made, and `not_tried` says why.
  bool plan() {
    for (std::size_t i = 0; i < doc_.slots.size(); ++i)
      if (doc_.slots[i].origin == SlotOrigin::parameter && dtype_is_float(doc_.slots[i].dtype))
        weights_.push_back(static_cast<std::int32_t>(i));
    watch_decisions();  // before a step is counted: its last op may ask
    shortens_ = slower() || std::any_of(tape_.steps.begin(), tape_.steps.end(),
                                        [this](const TapeStep& step) { return rate_again(step) != 1; });
    const std::vector<StepSpan> spans = spans_of(tape_);
    for (std::size_t s = 0; s < spans.size(); ++s) {
      const TapeStep& step = tape_.steps[s];
      if (spans[s].end <= spans[s].begin) continue;
      watch_loss(step);
      if (step.step == runner_.bad_step_) watch_gradients(step);
      if (step.end != kNone && step.end > step.gate && !(clip(spans[s], step) && watch_update(step)))
        return false;
      at(spans[s].end - 1, [this, step](Written&) { step_is_over(step.step); });
    }
    if (shortens_ || change_.undo) {
      const std::vector<OutsideWrite> others = outside_writes(graph_, tape_.steps, spans);
      if (shortens_) watch_other_writes(others);
      if (change_.undo && !undo(others)) return false;
    }
    if (change_.number && !change_number(*change_.number)) return false;
    if ((slower() || change_.clip > 0) && updates_ == 0)
      return refuse("no update of a weight is on the tape");
    return true;
  }

  void go(c10::Device device) {
    RunOptions options;
    options.precision = change_.precision;
    options.scan = false;
    options.device = device;
    options.edit.slot_edit = change_.slots;
    for (const auto& [op, edit] : reads_) options.edit.op_edit[op] = edit;
    for (const auto& [op, actions] : actions_)
      options.edit.output_edit[op] = [&list = actions](Written& written) {
        for (const Action& action : list) action(written);
      };
    RunResult result;
    try {
      result = runner_.replayer().run(options);
    } catch (const RunIsOver&) {
    }
    if (change_.clip > 0 && clipped_ == 0 && run_.not_tried.empty()) nothing_to_clip();
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

  bool slower() const { return change_.rate != 1 || change_.warmup > 0; }

  /// Steps that come a second time behind the incident (once_more) go on at the rate that the tape ended
  /// with: a program does not begin its warm-up again. What their updates are multiplied with for that.
  double rate_again(const TapeStep& step) const {
    const double of_end = runner_.rate_of_end_;
    const bool again = step.step > runner_.bad_step_ && step.rate > 0 && std::isfinite(step.rate);
    return again && of_end > 0 ? of_end / step.rate : 1;
  }

  void nothing_to_clip() {
    run_ = {.kind = run_.kind, .change = run_.change, .first_step = run_.first_step};
    std::ostringstream why;
    why << "no update has gradients of such a norm: the largest is " << std::setprecision(4) << longest_;
    run_.not_tried = why.str();
  }

  void at(std::int32_t op, Action action) { actions_[op].push_back(std::move(action)); }

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

  bool changes_anything() const {
    return slower() || change_.clip > 0 || change_.undo || change_.number || !change_.slots.empty() ||
           change_.precision != Precision::as_recorded;
  }

  /// Before the update its gradients get a norm of at most `clip` together, by the formula of
  /// torch.nn.utils.clip_grad_norm_; and the factor by which the program itself clipped, where it read their
  /// norm on the host so that its record is a number, becomes that of the norm they have now. False: they are
  /// not known.
  bool clip(const StepSpan& span, const TapeStep& step) {
    const bool again = step.clip > 0 && changes_anything();
    if (change_.clip <= 0 && !again) return true;
    const Result<std::vector<TapeGradient>> gradients = gradients_of(graph_, span, step);
    if (!gradients) return refuse(gradients.error().message);
    if (gradients->empty()) return true;
    const auto held = std::make_shared<std::vector<at::Tensor>>();
    for (const TapeGradient& gradient : *gradients)
      at(gradient.op, [held, entry = static_cast<std::size_t>(gradient.entry)](Written& written) {
        if (entry < written.size() && written[entry].defined()) held->push_back(written[entry]);
      });
    at(step.gate - 1, [this, held, step, again](Written&) {
      if (held->empty()) return;
      std::vector<at::Tensor> norms;
      norms.reserve(held->size());
      for (const at::Tensor& gradient : *held)
        norms.push_back(at::linalg_vector_norm(gradient, 2, c10::nullopt, false, at::kDouble));
      double norm = at::linalg_vector_norm(at::stack(norms), 2).item<double>(), factor = 1;
      longest_ = std::max(longest_, norm);
      if (change_.clip > 0 && clip_coefficient(change_.clip, norm) < 1) {
        factor = clip_coefficient(change_.clip, norm);
        norm *= factor;
        ++clipped_;
      }
      if (again) factor *= clip_coefficient(step.clip, norm) / clip_coefficient(step.clip, step.grad_norm);
      // Norms of the same gradients differ in their last bits by the order of the sum.
      if (std::abs(factor - 1) > 1e-12)
        for (at::Tensor& gradient : *held) gradient.mul_(factor);
      held->clear();
    });
    return true;
  }

  /// What the update writes into weights: looked at when the last of it is done, and made smaller if asked.
  bool watch_update(const TapeStep& step) {
    const double warm =
        change_.warmup > 0 ? static_cast<double>(updates_ + 1) / static_cast<double>(change_.warmup) : 1;
    const double share = change_.rate * std::min(warm, 1.0) * rate_again(step);
    bool any = false;
    for (const std::int32_t slot : weights_) {
      const std::vector<TraceGraph::Write>& writes = graph_.writes(SlotId{slot});
      const auto begin =
          std::lower_bound(writes.begin(), writes.end(), step.gate,
                           [](const auto& write, std::int32_t op) { return write.op.row() < op; });
      const auto end =
          std::lower_bound(begin, writes.end(), step.end,
                           [](const auto& write, std::int32_t op) { return write.op.row() < op; });
      if (begin == end) continue;
      any = true;
      const TraceGraph::Write last = *std::prev(end);
      const bool copied = copies(graph_.op(last.op));
      if (slower() && copied)
        return refuse("the weights are copies of others, which the tape does not know as such");
      const auto entry = static_cast<std::size_t>(last.entry);
      at(last.op.row(), [this, step, slot, entry, share, copied](Written& written) {
        if (entry >= written.size() || !written[entry].defined()) return;
        at::Tensor weight = whole_memory(written[entry]);
        if (shortens_ && !copied) shorten(slot, weight, share);
        if (trace::badness(weight).any) bad(step.step, "the update made " + name_of(slot) + " non-finite");
      });
    }
    if (any) ++updates_;
    return true;
  }

  /// What writes a weight between two updates is no update, and stays as it is.
  void watch_other_writes(const std::vector<OutsideWrite>& others) {
    for (const OutsideWrite& other : others)
      if (std::binary_search(weights_.begin(), weights_.end(), other.slot.row()))
        at(other.write.op.row(), [this, slot = other.slot.row(),
                                  entry = static_cast<std::size_t>(other.write.entry)](Written& written) {
          if (entry < written.size() && written[entry].defined())
            before_[slot] = whole_memory(written[entry]).clone();
        });
  }

  /// `look` sees the op's arguments before it runs, and may exchange them.
  void before(std::int32_t op, std::function<void(std::vector<c10::IValue>&)> look) {
    auto& edit = reads_[op];
    edit = [others = std::move(edit), look = std::move(look)](std::vector<c10::IValue>& stack) {
      if (others) (void)others(stack);
      look(stack);
      return false;
    };
  }

  /// False: no update takes such a number.
  bool change_number(const NumberChange& number) {
    const std::vector<NumberPlace> places = places_of(tape_.steps, doc_, number.name);
    for (const NumberPlace& place : places)
      before(place.op, [number, position = place.position](std::vector<c10::IValue>& stack) {
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
      take_back(other);
    }
    return any || refuse("step " + std::to_string(*change_.undo) +
                         " writes no weight and no moment outside of its update");
  }

  /// The memory as it was before the op, put back behind it.
  void take_back(const OutsideWrite& other) {
    const auto kept = std::make_shared<at::Tensor>();
    std::int32_t position = kNone;
    std::size_t element = 0, in_list = 0;  // of a list argument
    std::int32_t list = kNone;
    for (const TraceGraph::Argument& argument : graph_.arguments(other.write.op)) {
      in_list = argument.position == list ? in_list + 1 : 0;
      list = argument.position;
      if (graph_.slot(argument.row) != other.slot) continue;
      position = list;
      element = in_list;
      break;
    }
    before(other.write.op.row(), [kept, position, element](std::vector<c10::IValue>& stack) {
      const auto i = static_cast<std::size_t>(position);
      if (position == kNone || i >= stack.size()) return;
      const std::vector<at::Tensor> given = stack[i].isTensor()       ? std::vector{stack[i].toTensor()}
                                            : stack[i].isTensorList() ? stack[i].toTensorVector()
                                                                      : std::vector<at::Tensor>();
      if (element < given.size() && given[element].defined()) *kept = whole_memory(given[element]).clone();
    });
    at(other.write.op.row(), [kept, entry = static_cast<std::size_t>(other.write.entry)](Written& written) {
      if (kept->defined() && entry < written.size() && written[entry].defined())
        whole_memory(written[entry]).copy_(*kept);
    });
  }

  std::string name_of(std::int32_t slot) const {
    const std::string& name = doc_.slots[static_cast<std::size_t>(slot)].name;
    return name.empty() ? "a weight" : name;
  }

  /// weight = before + share · (after − before), in fp32 at least.
  void shorten(std::int32_t slot, at::Tensor& weight, double share) {
    at::Tensor& before = before_[slot];
    if (!before.defined()) {
      Result<at::Tensor> first = runner_.replayer().tensor(doc_.slots[static_cast<std::size_t>(slot)].data);
      if (!first) throw std::runtime_error(first.error().text());
      before = first->to(weight.device()).reshape({-1});
    }
    if (share != 1) {
      const at::ScalarType wide = at::promote_types(weight.scalar_type(), at::kFloat);
      weight.copy_(at::lerp(before.to(wide), weight.to(wide), share));
    }
    before = weight.clone();
  }

  /// A step that was left out is one of which nothing is known.
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
      before(read.op, [this, read](std::vector<c10::IValue>& stack) {
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
  RehearsedRun& run_;
  std::vector<std::int32_t> weights_;  // slots
  std::map<std::int32_t, std::vector<Action>> actions_;
  std::map<std::int32_t, std::function<bool(std::vector<c10::IValue>&)>> reads_;
  std::map<std::int32_t, at::Tensor> before_;
  double loss_ = std::nan("");
  std::int64_t updates_ = 0;  // that write a weight
  std::int64_t clipped_ = 0;
  double longest_ = 0;  // norm of an update's gradients
  bool shortens_ = false, otherwise_ = false, told_left_out_ = false;
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
