// LOG_ZERO: a hand-written cross-entropy, log(softmax(logits)). One logit leads by more than 104, so the
// others' fp32 probabilities underflow to exactly zero, and the target is one of them.
#include "samples/causes/incident.h"

int main(int argc, char** argv) {
  using namespace samples;
  at::manual_seed(3);
  const at::Tensor head = parameter(at::randn({8, 5}) * 0.1);
  at::Tensor x = at::randn({6, 8});
  x[4] *= 4000;  // an outlier for which the network is confidently wrong
  const at::Tensor confident = at::mm(x, head.detach()).argmax(1);
  const at::Tensor target = at::remainder(confident + 1, 5);

  nanquest::StepState state;
  state.step = 77;
  state.parameters = {{"head", head}};
  state.batch = {{"x", x}, {"target", target}};
  state.sample_ids = {"row-0", "row-1", "row-2", "row-3", "row-4", "row-5"};
  return record_incident(argc, argv, state, [&] {
    nanquest::ModuleScope scope("loss", "HandMadeCrossEntropy");
    const at::Tensor p = at::softmax(at::mm(x, head), 1);
    const at::Tensor loss = -at::log(p.gather(1, target.unsqueeze(1))).mean();
    loss.backward();
    return loss;
  });
}
