// LOSS_SCALE: a manual loss scaler, kept as a tensor. It doubled its scale every few hundred steps without a
// limit, and now the scale itself is infinite: the loss is finite, the scaled loss is not, and all gradients
// are NaN.
#include <limits>

#include "samples/causes/incident.h"

int main(int argc, char** argv) {
  using namespace samples;
  at::manual_seed(14);
  const at::Tensor w1 = parameter(at::randn({12, 16}) * 0.2), w2 = parameter(at::randn({16, 1}) * 0.2);
  const at::Tensor x = at::randn({6, 12}), y = at::randn({6, 1});
  const at::Tensor scale = at::full({}, std::numeric_limits<float>::infinity());

  nanquest::StepState state;
  state.step = 25600;
  state.loss_scale = std::numeric_limits<double>::infinity();
  state.parameters = {{"fc1", w1}, {"fc2", w2}};
  state.optimizer = {{"scaler.scale", scale}};
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
    (loss * scale).backward();
    return loss;
  });
}
