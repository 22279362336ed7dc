// EXP_OVERFLOW: a Laplace likelihood with a predicted log-scale. For one sample it is -95, and the precision
// exp(95) is beyond fp32.
#include "samples/causes/incident.h"

int main(int argc, char** argv) {
  using namespace samples;
  at::manual_seed(12);
  const at::Tensor body = parameter(at::randn({8, 8}) * 0.2), head = parameter(at::eye(8).narrow(1, 0, 2));
  at::Tensor x = at::rand({6, 8});
  x[4][1] = -95;
  const at::Tensor y = at::randn({6});

  nanquest::StepState state;
  state.step = 64;
  state.parameters = {{"body", body}, {"head", head}};
  state.batch = {{"x", x}, {"y", y}};
  state.sample_ids = {"s0", "s1", "s2", "s3", "s4", "s5"};
  return record_incident(argc, argv, state, [&] {
    at::Tensor side;
    {
      nanquest::ModuleScope scope("body", "Linear");
      side = at::tanh(at::mm(x, body)).pow(2).mean();
    }
    nanquest::ModuleScope scope("laplace", "LaplaceNll");
    const at::Tensor out = at::mm(x, head);
    const at::Tensor log_scale = out.select(1, 1);
    const at::Tensor loss = ((y - out.select(1, 0)).abs() * at::exp(-log_scale) + log_scale).mean() + side;
    loss.backward();
    return loss;
  });
}
