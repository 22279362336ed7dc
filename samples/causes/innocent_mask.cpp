// Innocent: a causal mask of -inf. Every row keeps at least itself, so softmax consumes the infinities and
// all is finite.
#include <limits>

#include "samples/causes/incident.h"

int main(int argc, char** argv) {
  using namespace samples;
  at::manual_seed(8);
  const at::Tensor w = parameter(at::randn({16, 16}) * 0.2);
  const at::Tensor tokens = at::randn({2, 6, 16});

  nanquest::StepState state;
  state.parameters = {{"w", w}};
  state.batch = {{"tokens", tokens}};
  return record_incident(argc, argv, state, [&] {
    nanquest::ModuleScope scope("attention", "CausalSelfAttention");
    const at::Tensor q = at::matmul(tokens, w);
    const at::Tensor mask = at::full({6, 6}, -std::numeric_limits<double>::infinity()).triu(1);
    const at::Tensor attention = at::softmax(at::bmm(q, tokens.transpose(1, 2)) * 0.25 + mask, -1);
    const at::Tensor loss = at::bmm(attention, tokens).pow(2).mean();
    loss.backward();
    return loss;
  });
}
