// RACE: the loader has two buffers and returns them in turn, one too few. While backward still needs the
// batch, the loader has begun to fill its memory for the step after the next.
#include <limits>
#include <vector>

#include "samples/causes/incident.h"

int main(int argc, char** argv) {
  using namespace samples;
  at::manual_seed(17);
  const at::Tensor w1 = parameter(at::randn({12, 16}) * 0.2), w2 = parameter(at::randn({16, 1}) * 0.2);
  std::vector<float> pinned(72);
  const at::Tensor x = at::from_blob(pinned.data(), {6, 12});
  x.copy_(at::randn({6, 12}));
  const at::Tensor y = at::randn({6, 1});

  nanquest::StepState state;
  state.step = 700;
  state.parameters = {{"fc1", w1}, {"fc2", w2}};
  state.batch = {{"x", x}, {"y", y}};
  return record_incident(argc, argv, state, [&] {
    at::Tensor h;
    {
      nanquest::ModuleScope scope("fc1", "Linear");
      h = at::relu(at::mm(x, w1));
    }
    at::Tensor loss;
    {
      nanquest::ModuleScope scope("fc2", "Linear");
      loss = (at::mm(h, w2) - y).pow(2).mean();
    }
    for (std::size_t i = 40; i < 46; ++i) pinned[i] = std::numeric_limits<float>::quiet_NaN();  // the loader's thread
    loss.backward();
    return loss;
  });
}
