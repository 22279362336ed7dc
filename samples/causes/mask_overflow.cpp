// MASK_OVERFLOW: attention in fp16 with two additive masks of finfo.min. If both hide a key, their sum is
// -131008, beyond fp16, and becomes -Inf. For one sample both hide every key, and softmax of that row is NaN.
#include "samples/causes/incident.h"

int main(int argc, char** argv) {
  using namespace samples;
  at::manual_seed(14);
  const at::Tensor wq = parameter(at::randn({16, 16}) * 0.2), wk = parameter(at::randn({16, 16}) * 0.2);
  const at::Tensor tokens = at::randn({4, 6, 16});
  at::Tensor padding = at::zeros({4, 1, 6}, at::kHalf), segment = at::zeros({4, 1, 6}, at::kHalf);
  padding[1].narrow(1, 4, 2).fill_(-65504.f);
  padding[2].fill_(-65504.f);
  segment[2].fill_(-65504.f);

  nanquest::StepState state;
  state.step = 12;
  state.parameters = {{"attention.wq", wq}, {"attention.wk", wk}};
  state.batch = {{"tokens", tokens}, {"padding", padding}, {"segment", segment}};
  state.sample_ids = {"a.txt:1", "a.txt:2", "a.txt:3", "a.txt:4"};
  return record_incident(argc, argv, state, [&] {
    nanquest::ModuleScope scope("attention", "SelfAttention");
    const at::Tensor half = tokens.to(at::kHalf);
    const at::Tensor q = at::matmul(half, wq.to(at::kHalf)), k = at::matmul(half, wk.to(at::kHalf));
    at::Tensor scores = at::bmm(q, k.transpose(1, 2)) * 0.25;
    scores = scores + padding;
    scores = scores + segment;
    const at::Tensor mixed = at::bmm(at::softmax(scores.to(at::kFloat), -1), tokens);
    const at::Tensor loss = (mixed - tokens).pow(2).mean();
    loss.backward();
    return loss;
  });
}
