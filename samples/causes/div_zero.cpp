// DIV_ZERO: a masked mean. One sample has no labelled token, so its loss is 0 divided by a count of 0.
#include "samples/causes/incident.h"

int main(int argc, char** argv) {
  using namespace samples;
  at::manual_seed(4);
  const at::Tensor w = parameter(at::randn({8, 1}) * 0.3);
  const at::Tensor x = at::randn({4, 5, 8}), y = at::randn({4, 5});
  at::Tensor labelled = at::ones({4, 5});
  labelled[1].zero_();  // nothing to learn from in sample 1
  labelled[3][2] = 0;

  nanquest::StepState state;
  state.step = 5;
  state.parameters = {{"w", w}};
  state.batch = {{"x", x}, {"y", y}, {"labelled", labelled}};
  state.sample_ids = {"s0", "s1", "s2", "s3"};
  return record_incident(argc, argv, state, [&] {
    at::Tensor error;
    {
      nanquest::ModuleScope scope("model", "Linear");
      error = (at::matmul(x, w).squeeze(-1) - y).pow(2) * labelled;
    }
    nanquest::ModuleScope scope("masked_mean", "MaskedMean");
    const at::Tensor loss = (error.sum(1) / labelled.sum(1)).mean();
    loss.backward();
    return loss;
  });
}
