// INF_LOGIT: labels that can't apply are masked with -inf, as for a softmax, but the loss is a binary
// cross-entropy for each label: target 0 times logit -inf is NaN.
#include <limits>

#include "samples/causes/incident.h"

int main(int argc, char** argv) {
  using namespace samples;
  at::manual_seed(15);
  const at::Tensor body = parameter(at::randn({8, 8}) * 0.3), head = parameter(at::randn({8, 5}) * 0.3);
  const at::Tensor x = at::randn({6, 8});
  const at::Tensor labels = at::zeros({6, 5});
  labels.select(1, 0).fill_(1);
  at::Tensor excluded = at::zeros({6, 5}, at::kBool);
  excluded[4][3] = true;

  nanquest::StepState state;
  state.step = 33;
  state.parameters = {{"body", body}, {"head", head}};
  state.batch = {{"x", x}, {"labels", labels}, {"excluded", excluded}};
  state.sample_ids = {"s0", "s1", "s2", "s3", "s4", "s5"};
  return record_incident(argc, argv, state, [&] {
    at::Tensor h;
    {
      nanquest::ModuleScope scope("body", "Linear");
      h = at::tanh(at::mm(x, body));
    }
    nanquest::ModuleScope scope("loss", "MultiLabel");
    const at::Tensor logits = at::mm(h, head).masked_fill(excluded, -std::numeric_limits<double>::infinity());
    const at::Tensor loss = at::binary_cross_entropy_with_logits(logits, labels);
    loss.backward();
    return loss;
  });
}
