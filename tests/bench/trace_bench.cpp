// What recording costs an op: nanoseconds beyond what an empty RecordFunction callback costs that asks for
// inputs and outputs, and the step-time ratios of a GPT whose step is launches, and of one whose step is
// arithmetic.
#include <ATen/Parallel.h>
#include <ATen/record_function.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

#include "probe/observe/step_scope.h"
#include "probe/record/recorder.h"
#include "tests/bench/guard_gpt.h"
#include "tests/bench/report.h"

namespace nanquest::bench {
namespace {

/// What observes a step; each is begun and ended outside the measurement, as a session does it once.
struct Observed {
  virtual ~Observed() = default;
  virtual void begin_step() {}
  virtual void begin_update() {}
  virtual void end_step() {}
};

struct Empty : Observed {
  Empty()
      : handle(at::addThreadLocalCallback(
            at::RecordFunctionCallback(
                [](const at::RecordFunction&) -> std::unique_ptr<at::ObserverContext> { return nullptr; },
                [](const at::RecordFunction&, at::ObserverContext*) {})
                .needsInputs(true)
                .needsOutputs(true)
                .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}))) {}
  ~Empty() override { at::removeCallback(handle); }
  at::CallbackHandle handle;
};

struct Traced : Observed {
  explicit Traced(bool keep_values, bool watch_values = false)
      : keep(keep_values), watch(watch_values), recorder({}), session(start(recorder)) {}
  static ObserverSession start(OpSink& sink) {
    auto started = ObserverSession::start(sink);
    if (!started) std::exit(70);
    return std::move(started).value();
  }
  void begin_step() override { recorder.begin_step(number++, watch); }
  void begin_update() override {
    recorder.begin_update(keep);
    if (recorder.idle()) session.rest();
  }
  void end_step() override {
    session.wake();
    recorder.end_step(keep && !watch);
  }
  bool keep, watch;
  Recorder recorder;
  ObserverSession session;
  std::int64_t number = 0;
};

/// Every step is healthy, and its batch is kept.
struct Twinned : Traced {
  explicit Twinned(const Gpt& net) : Traced(false) {
    for (const at::Tensor& p : net.parameters) names.state.insert(p.storage().unsafeGetStorageImpl());
    for (const at::Tensor* t : {&net.x, &net.y}) names.batch.insert(t->storage().unsafeGetStorageImpl());
  }
  void begin_update() override {
    recorder.keep_healthy(number - 1, names);
    Traced::begin_update();
  }
  record::TwinNames names;
};

struct Size {
  const char* name;
  std::int64_t width, depth, rows, tokens;
  int pairs;
  double trace_goal, kept_goal, watch_goal;
  bool per_op;  // differences of long steps say nothing about what one op costs
};

double step(Gpt& net, Observed* by) {
  return seconds([&] {
    if (by) by->begin_step();
    net.clear_gradients();
    net.compute();
    {
      const PhaseScope phase(Phase::optimizer);
      if (by) by->begin_update();
      net.update(1.0);
    }
    if (by) by->end_step();
  });
}

/// Seconds of a step under `by`, once the allocator and the trace know such steps.
double settled(Gpt& net, const std::unique_ptr<Observed>& by) {
  for (int warm = 0; warm < 5; ++warm) step(net, by.get());
  double all = 0;
  for (int i = 0; i < 3; ++i) all += step(net, by.get());
  return all / 3;
}

/// What a step costs with `ours` beyond `reference`, per `per` or as a ratio; they take turns in beginning.
template <class Make>
std::vector<double> paired(Gpt& net, Make&& ours, Make&& reference, int pairs, double per, bool difference) {
  std::vector<double> found;
  for (int i = 0; i < rounds(pairs); ++i) {
    double a = 0, b = 0;
    if (i % 2) a = settled(net, ours());
    b = settled(net, reference());
    if (i % 2 == 0) a = settled(net, ours());
    found.push_back(difference ? (a - b) / per : a / b);
  }
  return found;
}

std::size_t ops_of(Gpt& net) {
  Traced by(false);
  step(net, &by);
  by.begin_step();
  net.clear_gradients();
  net.compute();
  net.update(1.0);
  return by.recorder.current()->ops.size();
}

using Made = std::function<std::unique_ptr<Observed>()>;

void measure(const Size& size) {
  Gpt net(size.width, size.depth, size.rows, size.tokens);
  const double ops = static_cast<double>(ops_of(net));
  const Made nothing = [] { return std::unique_ptr<Observed>(); };
  const Made empty = [] { return std::make_unique<Empty>(); };
  const Made trace = [] { return std::make_unique<Traced>(false); };
  const Made kept = [] { return std::make_unique<Traced>(true); };
  const Made twinned = [&] { return std::make_unique<Twinned>(net); };
  const Made watch = [] { return std::make_unique<Traced>(true, true); };
  std::printf("# %s: %.0f ops, a step takes %.2f ms alone\n", size.name, ops, 1e3 * step(net, nullptr));
  const std::string name = std::string(", ") + size.name;
  if (size.per_op) {
    const double each = ops * 1e-6;
    report("empty callback, us an op" + name, paired(net, empty, nothing, size.pairs, each, true), 0.5,
           Better::lower);
    report("trace, us an op beyond it" + name, paired(net, kept, empty, size.pairs, each, true), 1,
           Better::lower);
    report("healthy twin, us an op beyond trace" + name, paired(net, twinned, trace, size.pairs, each, true),
           0.1, Better::lower);
    report("watch, us an op beyond it" + name, paired(net, watch, empty, size.pairs, each, true), 10,
           Better::lower);
  }
  report("trace, step" + name, paired(net, trace, nothing, size.pairs, 1, false), size.trace_goal,
         Better::lower);
  report("trace with values, step" + name, paired(net, kept, nothing, size.pairs, 1, false), size.kept_goal,
         Better::lower);
  report("watch, step" + name, paired(net, watch, nothing, size.pairs, 1, false), size.watch_goal,
         Better::lower);
}

}  // namespace
}  // namespace nanquest::bench

/// `trace_bench work [steps]` only runs traced steps, to count their instructions; with `work-twin` all of
/// them are healthy and keep their batch.
int main(int argc, char** argv) {
  using namespace nanquest::bench;
  at::set_num_threads(1);
  const Size toy{"launch-bound", 16, 4, 1, 8, 60, 1.35, 1.35, 3, true},
      real{"arithmetic", 256, 4, 8, 128, 8, 1.03, 1.05, 1.25, false};
  if (argc > 1 && std::strncmp(argv[1], "work", 4) == 0) {
    Gpt net(toy.width, toy.depth, toy.rows, toy.tokens);
    const std::unique_ptr<Traced> by = std::strcmp(argv[1], "work-twin") == 0
                                           ? std::make_unique<Twinned>(net)
                                           : std::make_unique<Traced>(false);
    for (int i = argc > 2 ? std::atoi(argv[2]) : 20; i > 0; --i) step(net, by.get());
    return 0;
  }
  measure(toy);
  measure(real);
  return 0;
}
