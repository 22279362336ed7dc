// UNINITIALIZED: a buffer is made with empty, and only the rows of features that are present are filled. The
// third feature is missing, so its row holds what was in memory. (With deterministic algorithms PyTorch fills
// such memory with NaN, which makes it visible.)
#include <ATen/Context.h>

#include "samples/causes/incident.h"

int main(int argc, char** argv) {
  using namespace samples;
  at::manual_seed(16);
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/true);
  const at::Tensor w1 = parameter(at::randn({12, 16}) * 0.2), w2 = parameter(at::randn({16, 1}) * 0.2);
  const at::Tensor a = at::randn({6, 4}), b = at::randn({6, 4}), y = at::randn({6, 1});

  nanquest::StepState state;
  state.step = 9;
  state.parameters = {{"fc1", w1}, {"fc2", w2}};
  state.batch = {{"a", a}, {"b", b}, {"y", y}};
  return record_incident(argc, argv, state, [&] {
    const at::Tensor features = at::empty({6, 12});
    features.narrow(1, 0, 4).copy_(a);
    features.narrow(1, 4, 4).copy_(b);
    at::Tensor h;
    {
      nanquest::ModuleScope scope("fc1", "Linear");
      h = at::relu(at::mm(features, w1));
    }
    nanquest::ModuleScope scope("fc2", "Linear");
    const at::Tensor loss = (at::mm(h, w2) - y).pow(2).mean();
    loss.backward();
    return loss;
  });
}
