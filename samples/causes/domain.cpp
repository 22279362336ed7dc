// DOMAIN: a head that predicts mean and variance without keeping the variance positive. For one sample it is
// negative, and its square root is NaN.
#include "samples/causes/incident.h"

int main(int argc, char** argv) {
  using namespace samples;
  at::manual_seed(11);
  const at::Tensor body = parameter(at::randn({8, 8}) * 0.2), head = parameter(at::eye(8).narrow(1, 0, 2));
  at::Tensor x = at::rand({6, 8}) + 0.5;
  x[3][1] = -2;  // what the head takes for the variance
  const at::Tensor y = at::randn({6});

  nanquest::StepState state;
  state.step = 210;
  state.parameters = {{"body", body}, {"head", head}};
  state.batch = {{"x", x}, {"y", y}};
  state.sample_ids = {"s0", "s1", "s2", "s3", "s4", "s5"};
  return record_incident(argc, argv, state, [&] {
    at::Tensor side;
    {
      nanquest::ModuleScope scope("body", "Linear");
      side = at::tanh(at::mm(x, body)).pow(2).mean();
    }
    nanquest::ModuleScope scope("gaussian", "GaussianHead");
    const at::Tensor out = at::mm(x, head);
    const at::Tensor z = (y - out.select(1, 0)) / at::sqrt(out.select(1, 1));
    const at::Tensor loss = z.pow(2).mean() + side;
    loss.backward();
    return loss;
  });
}
