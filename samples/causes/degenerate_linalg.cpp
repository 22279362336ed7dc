// DEGENERATE_LINALG: a loss on the eigenvectors of a matrix that starts as a multiple of the identity. All its
// eigenvalues are equal, and the derivative of an eigenvector divides by their differences.
#include "samples/causes/incident.h"

int main(int argc, char** argv) {
  using namespace samples;
  at::manual_seed(19);
  const at::Tensor body = parameter(at::randn({8, 4}) * 0.3), metric = parameter(at::eye(4) * 2);
  const at::Tensor x = at::randn({6, 8}), y = at::randn({6, 4});

  nanquest::StepState state;
  state.step = 0;
  state.parameters = {{"body", body}, {"metric", metric}};
  state.batch = {{"x", x}, {"y", y}};
  return record_incident(argc, argv, state, [&] {
    at::Tensor h;
    {
      nanquest::ModuleScope scope("body", "Linear");
      h = at::tanh(at::mm(x, body));
    }
    nanquest::ModuleScope scope("metric", "Whitening");
    const auto [values, vectors] = at::linalg_eigh(metric * 1.5);
    const at::Tensor loss = (at::mm(h, vectors) / values - y).pow(2).mean();
    loss.backward();
    return loss;
  });
}
