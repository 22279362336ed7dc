// BAD_STATE: an earlier bad step was skipped but not undone. BatchNorm's running variance has been NaN since,
// and normalising with it makes every batch NaN.
#include <limits>

#include "samples/causes/incident.h"

int main(int argc, char** argv) {
  using namespace samples;
  at::manual_seed(7);
  const at::Tensor w = parameter(at::randn({8, 4}) * 0.3);
  const at::Tensor mean = at::zeros({4});
  at::Tensor variance = at::ones({4});
  variance[2] = std::numeric_limits<float>::quiet_NaN();
  const at::Tensor x = at::randn({6, 8}), y = at::randn({6, 4});

  nanquest::StepState state;
  state.step = 902;
  state.parameters = {{"fc", w}};
  state.buffers = {{"norm.running_mean", mean}, {"norm.running_var", variance}};
  state.batch = {{"x", x}, {"y", y}};
  return record_incident(argc, argv, state, [&] {
    at::Tensor h;
    {
      nanquest::ModuleScope scope("fc", "Linear");
      h = at::mm(x, w);
    }
    {
      nanquest::ModuleScope scope("norm", "BatchNorm1d");
      h = (h - mean) * at::rsqrt(variance + 1e-5);
    }
    const at::Tensor loss = (h - y).pow(2).mean();
    loss.backward();
    return loss;
  });
}
