// EPS_UNDERFLOW: an RMS norm written out in fp16 with eps = 1e-8. fp16's smallest number is 6e-8, so the
// epsilon is zero, and a row of padding, zero throughout, is divided by zero.
#include "samples/causes/incident.h"

int main(int argc, char** argv) {
  using namespace samples;
  at::manual_seed(13);
  const at::Tensor w = parameter(at::randn({8, 8}) * 0.3), head = parameter(at::randn({8, 4}) * 0.3);
  at::Tensor x = at::randn({6, 8});
  x[2].zero_();
  const at::Tensor y = at::randn({6, 4});

  nanquest::StepState state;
  state.step = 1;
  state.parameters = {{"w", w}, {"head", head}};
  state.batch = {{"x", x}, {"y", y}};
  state.sample_ids = {"s0", "s1", "padding", "s3", "s4", "s5"};
  return record_incident(argc, argv, state, [&] {
    at::Tensor h;
    {
      nanquest::ModuleScope scope("fc", "Linear");
      h = at::mm(x.to(at::kHalf), w.to(at::kHalf));
    }
    {
      nanquest::ModuleScope scope("norm", "RMSNorm");
      h = h * at::rsqrt(h.pow(2).mean(-1, true) + 1e-8);
    }
    nanquest::ModuleScope scope("head", "Linear");
    const at::Tensor loss = (at::mm(h.to(at::kFloat), head) - y).pow(2).mean();
    loss.backward();
    return loss;
  });
}
