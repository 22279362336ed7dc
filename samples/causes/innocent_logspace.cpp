// Innocent: the forward recursion of a hidden Markov model in log space. Impossible states are log(0) = -inf
// on purpose; logsumexp consumes them, and the likelihood is finite.
#include "samples/causes/incident.h"

int main(int argc, char** argv) {
  using namespace samples;
  at::manual_seed(9);
  const at::Tensor emission = parameter(at::randn({4, 3}));
  const at::Tensor start = at::tensor({1.0f, 0.0f, 0.0f});  // only state 0 is possible at the start
  const at::Tensor transition =
      at::tensor({0.5f, 0.3f, 0.2f, 0.0f, 0.5f, 0.5f, 0.3f, 0.3f, 0.4f}).view({3, 3});

  nanquest::StepState state;
  state.parameters = {{"emission", emission}};
  state.batch = {{"start", start}, {"transition", transition}};
  return record_incident(argc, argv, state, [&] {
    nanquest::ModuleScope scope("hmm", "ForwardRecursion");
    at::Tensor alpha = at::log(start) + at::log_softmax(emission[0], 0);
    for (int t = 1; t < 4; ++t)
      alpha = at::logsumexp(alpha.unsqueeze(1) + at::log(transition), 0) + at::log_softmax(emission[t], 0);
    const at::Tensor loss = -at::logsumexp(alpha, 0);
    loss.backward();
    return loss;
  });
}
