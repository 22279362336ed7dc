#include "probe/program/engine.h"

#include <torch/csrc/autograd/engine.h>

#include <atomic>

namespace nanquest::program {
namespace {

std::atomic<BackwardListener*> told{nullptr};

/// Depth of nested passes: checkpointing runs passes inside a pass.
thread_local int depth = 0;

class HeardEngine final : public torch::autograd::Engine {
 public:
  torch::autograd::variable_list execute(const torch::autograd::edge_list& roots,
                                         const torch::autograd::variable_list& inputs, bool keep_graph,
                                         bool create_graph, bool accumulate_grad,
                                         const torch::autograd::edge_list& outputs) override {
    const Pass pass(roots, accumulate_grad, create_graph);
    return Engine::execute(roots, inputs, keep_graph, create_graph, accumulate_grad, outputs);
  }

 private:
  struct Pass {
    Pass(const torch::autograd::edge_list& roots, bool accumulates, bool again)
        : accumulates_(accumulates), again_(again) {
      if (depth++ == 0) told.load()->begins(roots, accumulates_, again_);
    }
    ~Pass() {
      if (--depth == 0) told.load()->ends(accumulates_, again_);
    }
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;

   private:
    bool accumulates_, again_;
  };
};

torch::autograd::Engine& heard_engine() {
  // Leaked, as Python's engine is: its threads may still wait for work when static objects are destroyed.
  static auto* engine = new HeardEngine();
  return *engine;
}

}  // namespace

void listen_to_backward(BackwardListener& listener) {
  told.store(&listener);
  torch::autograd::set_default_engine_stub(heard_engine);
}

}  // namespace nanquest::program
