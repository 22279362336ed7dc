// BAD_SETTING: a cosine schedule with a warm-up of 0 steps divides 0 by 0, and the learning rate is NaN. Loss and
// gradients are fine; the update writes NaN into every weight.
#include <limits>

#include "probe/observe/step_scope.h"
#include "samples/causes/incident.h"

int main(int argc, char** argv) {
  using namespace samples;
  at::manual_seed(15);
  const at::Tensor w1 = parameter(at::randn({12, 16}) * 0.2), w2 = parameter(at::randn({16, 1}) * 0.2);
  const at::Tensor x = at::randn({6, 12}), y = at::randn({6, 1});
  const double warmed_up = 0, warm_up = 0;

  nanquest::StepState state;
  state.step = 0;
  state.parameters = {{"fc1", w1}, {"fc2", w2}};
  state.batch = {{"x", x}, {"y", y}};
  return record_incident(argc, argv, state, [&] {
    at::Tensor h;
    {
      nanquest::ModuleScope scope("fc1", "Linear");
      h = at::relu(at::mm(x, w1));
    }
    at::Tensor loss;
    {
      nanquest::ModuleScope scope("fc2", "Linear");
      loss = (at::mm(h, w2) - y).pow(2).mean();
    }
    loss.backward();
    const at::NoGradGuard no_grad;
    const nanquest::PhaseScope phase(nanquest::Phase::optimizer);
    const double rate = 0.1 * (warmed_up / warm_up);
    for (const at::Tensor& w : {w1, w2}) w.add_(w.grad(), -rate);
    return loss;
  });
}
