// LOGSPACE_INF_GRAD: alignments in log space. A state that can't be reached has the probability 0, which is
// -Inf in log space, as intended: forward continues with it and ends finite. The derivative of logaddexp at
// two -Inf subtracts -Inf from -Inf.
#include <limits>

#include "samples/causes/incident.h"

int main(int argc, char** argv) {
  using namespace samples;
  at::manual_seed(12);
  const double impossible = -std::numeric_limits<double>::infinity();
  const at::Tensor emission = parameter(at::randn({4, 5}));
  const at::Tensor head = parameter(at::randn({5, 5}) * 0.3);
  const at::Tensor x = at::randn({4, 5});

  nanquest::StepState state;
  state.step = 64;
  state.parameters = {{"emission", emission}, {"head", head}};
  state.batch = {{"x", x}};
  return record_incident(argc, argv, state, [&] {
    at::Tensor score;
    {
      nanquest::ModuleScope scope("head", "Linear");
      score = at::log_softmax(at::mm(x, head) + emission, 1);
    }
    nanquest::ModuleScope scope("alignment", "Alignment");
    const at::Tensor later = at::arange(5) > 1;  // after the first frame only two states can be reached
    at::Tensor alpha = at::masked_fill(score[0], later, impossible);
    for (int t = 1; t < 4; ++t) {
      const at::Tensor before = at::full({1}, impossible);
      const at::Tensor moved = at::cat({before, alpha.narrow(0, 0, 4)});
      alpha = at::logaddexp(alpha, moved) + score[t];
    }
    const at::Tensor loss = -at::logsumexp(alpha, 0);
    loss.backward();
    return loss;
  });
}
