// INFEASIBLE_TARGET: CTC on a batch in which one transcript has more labels than its recording has frames. No
// alignment exists, and the loss is infinite.
#include "samples/causes/incident.h"

int main(int argc, char** argv) {
  using namespace samples;
  at::manual_seed(18);
  const at::Tensor body = parameter(at::randn({8, 8}) * 0.3), head = parameter(at::randn({8, 5}) * 0.3);
  const at::Tensor frames = at::randn({4, 6, 8});
  const at::Tensor transcripts = at::randint(1, 5, {4, 5}, at::kLong);
  transcripts[1].copy_(at::tensor({1, 1, 2, 2, 3}, at::kLong));  // with its blanks: 7 steps

  nanquest::StepState state;
  state.step = 5;
  state.parameters = {{"body", body}, {"head", head}};
  state.batch = {{"frames", frames}, {"transcripts", transcripts}};
  state.sample_ids = {"a.wav", "b.wav", "c.wav", "d.wav"};
  return record_incident(argc, argv, state, [&] {
    at::Tensor h;
    {
      nanquest::ModuleScope scope("body", "Linear");
      h = at::tanh(at::matmul(frames, body));
    }
    nanquest::ModuleScope scope("ctc", "CTCLoss");
    const at::Tensor log_p = at::log_softmax(at::matmul(h, head), -1).transpose(0, 1);
    const at::Tensor loss = at::ctc_loss(log_p, transcripts, {6, 6, 6, 6}, {3, 5, 2, 3});
    loss.backward();
    return loss;
  });
}
