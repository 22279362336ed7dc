// FP16_OVERFLOW: a wide MLP in fp16 whose hidden activations grew over training. The down projection adds 512
// products of a few hundred each and exceeds 65504; the residual stream becomes infinite, and the
// normalisation after it makes NaN.
#include "samples/causes/incident.h"

int main(int argc, char** argv) {
  using namespace samples;
  at::manual_seed(1);
  const at::Tensor up = parameter(at::rand({64, 512}) * 0.5);
  const at::Tensor down = parameter(at::rand({512, 64}) * 2);
  const at::Tensor head = parameter(at::randn({64, 8}) * 0.1);
  const at::Tensor x = at::rand({4, 64}) * 20;
  const at::Tensor target = at::randint(8, {4}, at::kLong);

  nanquest::StepState state;
  state.step = 131;
  state.parameters = {{"mlp.up", up}, {"mlp.down", down}, {"head", head}};
  state.batch = {{"x", x}, {"target", target}};
  state.sample_ids = {"doc-7:0", "doc-7:64", "doc-9:0", "doc-9:64"};
  return record_incident(argc, argv, state, [&] {
    at::Tensor h;
    {
      nanquest::ModuleScope mlp("mlp", "Mlp");
      h = at::relu(at::mm(x.to(at::kHalf), up.to(at::kHalf)));
      h = at::mm(h, down.to(at::kHalf));
    }
    nanquest::ModuleScope scope("head", "Linear");
    h = at::layer_norm(h.to(at::kFloat), {64});
    const at::Tensor loss = at::cross_entropy_loss(at::mm(h, head), target);
    loss.backward();
    return loss;
  });
}
