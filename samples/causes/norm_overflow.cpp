// NORM_OVERFLOW: a model in fp16 whose gradients are large but finite. Their norm is not: it exceeds 65504,
// the clip divides by infinity, and every gradient becomes zero. Nothing is NaN, and nothing is learned.
#include "probe/observe/step_scope.h"
#include "samples/causes/incident.h"

int main(int argc, char** argv) {
  using namespace samples;
  at::manual_seed(13);
  const at::Tensor w1 = (at::randn({64, 256}) * 0.2).to(at::kHalf).set_requires_grad(true);
  const at::Tensor w2 = (at::randn({256, 8}) * 0.2).to(at::kHalf).set_requires_grad(true);
  const at::Tensor x = at::randn({8, 64}).to(at::kHalf), y = at::randn({8, 8}).to(at::kHalf);

  nanquest::StepState state;
  state.step = 210;
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
      loss = (at::mm(h, w2) - y).to(at::kFloat).mul(8).pow(2).sum();
    }
    loss.backward();
    const at::NoGradGuard no_grad;
    const nanquest::PhaseScope phase(nanquest::Phase::optimizer);
    const at::Tensor norm =
        at::linalg_vector_norm(at::stack({at::linalg_vector_norm(w1.grad()), at::linalg_vector_norm(w2.grad())}));
    const at::Tensor factor = at::clamp_max(1.0 / (norm + 1e-6), 1);
    for (const at::Tensor& w : {w1, w2}) {
      w.grad().mul_(factor);
      w.sub_(w.grad(), 0.01);
    }
    return loss;
  });
}
