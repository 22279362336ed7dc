// ALL_MASKED_ROW: attention over a padded batch in which one sample is empty. Every key of that sample is
// padding, all its scores are -inf, and softmax of such a row is NaN.
#include <limits>

#include "samples/causes/incident.h"

int main(int argc, char** argv) {
  using namespace samples;
  at::manual_seed(2);
  const at::Tensor wq = parameter(at::randn({16, 16}) * 0.2), wk = parameter(at::randn({16, 16}) * 0.2);
  const at::Tensor tokens = at::randn({4, 6, 16});
  const at::Tensor lengths = at::tensor({6, 3, 0, 5}, at::kLong);  // sample 2 has no token at all
  const at::Tensor padding = at::arange(6).unsqueeze(0) >= lengths.unsqueeze(1);

  nanquest::StepState state;
  state.step = 12;
  state.parameters = {{"attention.wq", wq}, {"attention.wk", wk}};
  state.batch = {{"tokens", tokens}, {"padding", padding}};
  state.sample_ids = {"a.txt:1", "a.txt:2", "a.txt:3", "a.txt:4"};
  return record_incident(argc, argv, state, [&] {
    nanquest::ModuleScope scope("attention", "SelfAttention");
    const at::Tensor q = at::matmul(tokens, wq), k = at::matmul(tokens, wk);
    at::Tensor scores = at::bmm(q, k.transpose(1, 2)) * 0.25;
    scores = scores.masked_fill(padding.unsqueeze(1), -std::numeric_limits<double>::infinity());
    const at::Tensor mixed = at::bmm(at::softmax(scores, -1), tokens);
    const at::Tensor loss = (mixed - tokens).pow(2).mean();
    loss.backward();
    return loss;
  });
}
