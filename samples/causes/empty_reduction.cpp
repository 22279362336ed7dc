// EMPTY_REDUCTION: an auxiliary loss over the labelled tokens of a batch in which no token is labelled. The
// mean of no elements is 0 / 0.
#include "samples/causes/incident.h"

int main(int argc, char** argv) {
  using namespace samples;
  at::manual_seed(17);
  const at::Tensor body = parameter(at::randn({8, 4}) * 0.3), aux = parameter(at::randn({8, 4}) * 0.3);
  const at::Tensor x = at::randn({6, 8}), y = at::randn({6, 4});
  const at::Tensor labelled = at::zeros({6, 4}, at::kBool);

  nanquest::StepState state;
  state.step = 70;
  state.parameters = {{"body", body}, {"aux", aux}};
  state.batch = {{"x", x}, {"y", y}, {"labelled", labelled}};
  return record_incident(argc, argv, state, [&] {
    at::Tensor main_loss;
    {
      nanquest::ModuleScope scope("body", "Linear");
      main_loss = (at::mm(x, body) - y).pow(2).mean();
    }
    nanquest::ModuleScope scope("aux", "LabelledOnly");
    const at::Tensor error = (at::mm(x, aux) - y).pow(2);
    const at::Tensor loss = main_loss + error.masked_select(labelled).mean();
    loss.backward();
    return loss;
  });
}
