// SINGULAR_GRAD: a distance sqrt(Σ(a - b)²) between pairs, one of which is a sample with itself. Forward
// gives 0; the derivative of sqrt at 0 is infinite, and infinity times the inner derivative 0 is NaN.
#include "samples/causes/incident.h"

int main(int argc, char** argv) {
  using namespace samples;
  at::manual_seed(5);
  const at::Tensor embedding = parameter(at::randn({10, 6}));
  const at::Tensor left = at::tensor({0, 3, 4, 7}, at::kLong);
  const at::Tensor right = at::tensor({1, 5, 4, 2}, at::kLong);  // pair 2 is an item with itself
  const at::Tensor wanted = at::tensor({1.0f, 2.0f, 0.5f, 1.5f});

  nanquest::StepState state;
  state.step = 40;
  state.parameters = {{"embedding", embedding}};
  state.batch = {{"left", left}, {"right", right}, {"wanted", wanted}};
  state.sample_ids = {"pair-0", "pair-1", "pair-2", "pair-3"};
  return record_incident(argc, argv, state, [&] {
    at::Tensor a, b;
    {
      nanquest::ModuleScope scope("embedding", "Embedding");
      a = at::embedding(embedding, left), b = at::embedding(embedding, right);
    }
    nanquest::ModuleScope scope("distance", "Euclidean");
    const at::Tensor distance = (a - b).pow(2).sum(1).sqrt();
    const at::Tensor loss = (distance - wanted).pow(2).mean();
    loss.backward();
    return loss;
  });
}
