// ZERO_TIMES_INF: a cross-entropy with soft labels, Σ p log q, against a prior that excludes some classes: log q
// is -inf there on purpose, p is 0, and 0 · -inf is NaN.
#include <limits>

#include "samples/causes/incident.h"

int main(int argc, char** argv) {
  using namespace samples;
  at::manual_seed(16);
  const at::Tensor body = parameter(at::randn({8, 8}) * 0.3), head = parameter(at::randn({8, 5}) * 0.3);
  const at::Tensor x = at::randn({6, 8});
  at::Tensor soft = at::full({6, 5}, 0.2f), prior = at::zeros({6, 5});
  soft[3][2] = 0;
  prior[3][2] = -std::numeric_limits<float>::infinity();

  nanquest::StepState state;
  state.step = 9;
  state.parameters = {{"body", body}, {"head", head}};
  state.batch = {{"x", x}, {"soft", soft}, {"prior", prior}};
  state.sample_ids = {"s0", "s1", "s2", "s3", "s4", "s5"};
  return record_incident(argc, argv, state, [&] {
    at::Tensor h, side;
    {
      nanquest::ModuleScope scope("body", "Linear");
      h = at::tanh(at::mm(x, body));
      side = (h * h).mean();
    }
    nanquest::ModuleScope scope("loss", "SoftCrossEntropy");
    const at::Tensor log_q = at::log_softmax(at::mm(h, head), 1) + prior;
    const at::Tensor loss = -(soft * log_q).sum(1).mean() + side;
    loss.backward();
    return loss;
  });
}
