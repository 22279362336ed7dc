// BAD_DATA: a missing sensor value became NaN in the feature table, and the loader passed it on.
#include <limits>

#include "samples/causes/incident.h"

int main(int argc, char** argv) {
  using namespace samples;
  at::manual_seed(6);
  const at::Tensor w1 = parameter(at::randn({12, 16}) * 0.2), w2 = parameter(at::randn({16, 1}) * 0.2);
  at::Tensor features = at::randn({6, 12});
  features[4][7] = std::numeric_limits<float>::quiet_NaN();
  const at::Tensor y = at::randn({6, 1});

  nanquest::StepState state;
  state.step = 3;
  state.parameters = {{"fc1", w1}, {"fc2", w2}};
  state.batch = {{"features", features}, {"y", y}};
  state.sample_ids = {"day-1", "day-2", "day-3", "day-4", "day-5", "day-6"};
  return record_incident(argc, argv, state, [&] {
    at::Tensor h;
    {
      nanquest::ModuleScope scope("fc1", "Linear");
      h = at::relu(at::mm(features, w1));
    }
    nanquest::ModuleScope scope("fc2", "Linear");
    const at::Tensor loss = (at::mm(h, w2) - y).pow(2).mean();
    loss.backward();
    return loss;
  });
}
