// UNSELECTED_BRANCH: a Huber-like loss on distances. where() takes the square for small ones and the logarithm for
// large ones, so its result is finite; but backward runs through both branches, and at the distance of 0 the
// logarithm is -Inf and its derivative infinite. Times the gradient of 0 that where() sends there it is NaN.
#include "samples/causes/incident.h"

int main(int argc, char** argv) {
  using namespace samples;
  at::manual_seed(11);
  const at::Tensor embedding = parameter(at::randn({10, 6}));
  const at::Tensor scale = parameter(at::ones({4}));
  const at::Tensor left = at::tensor({0, 3, 4, 7}, at::kLong);
  const at::Tensor right = at::tensor({1, 5, 4, 2}, at::kLong);  // pair 2 is an item with itself

  nanquest::StepState state;
  state.step = 18;
  state.parameters = {{"embedding", embedding}, {"scale", scale}};
  state.batch = {{"left", left}, {"right", right}};
  state.sample_ids = {"pair-0", "pair-1", "pair-2", "pair-3"};
  return record_incident(argc, argv, state, [&] {
    at::Tensor a, b;
    {
      nanquest::ModuleScope scope("embedding", "Embedding");
      a = at::embedding(embedding, left), b = at::embedding(embedding, right);
    }
    nanquest::ModuleScope scope("huber", "HandMadeHuber");
    const at::Tensor squared = (a - b).pow(2).sum(1);
    const at::Tensor robust = at::where(squared < 1, squared * 0.5, at::log(squared) * 0.5 + 0.5);
    const at::Tensor loss = (robust * scale).mean();
    loss.backward();
    return loss;
  });
}
