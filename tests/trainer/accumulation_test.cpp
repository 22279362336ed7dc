// A batch in parts gives the same result as the whole batch.
#include "tests/trainer/loop_fixture.h"

#include "trainer/text/next_token.h"

namespace nanquest::trainer {
namespace {

using test::Folder;
using test::quick_config;
using test::quick_model;
using test::train;

TEST(Accumulation, EqualsTheWholeBatch) {
  const auto losses = [](std::int64_t parts) {
    const Folder folder;
    LoopConfig config = quick_config(folder, 8);
    config.micro_batches = parts;
    const auto run = train(folder, config, quick_model());
    std::vector<double> values;
    for (const StepEvent& e : run->steps) values.push_back(e.loss);
    return values;
  };
  const auto whole = losses(1), parts = losses(4);
  ASSERT_EQ(whole.size(), 8u);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_NEAR(whole[i], parts[i], 1e-5);
}

/// Text in which more and more targets are left out (-100) from row to row, in the last row all of them.
class MaskedText final : public Task {
 public:
  explicit MaskedText(const Folder& folder) : data_(test::quick_data(folder)), model_(quick_model()) {}
  NamedTensors parameters() const override { return model_->parameters(); }
  std::int64_t train_samples() const override { return data_.train_rows(); }
  Batch train_batch(std::int64_t position, std::int64_t size) const override {
    TokenRows w = data_.train_batch(position, size);
    for (std::int64_t row = 0; row < size; ++row)
      w.targets[row].narrow(0, 0, row + 1 == size ? w.targets.size(1) : 3 * row).fill_(-100);
    return {{{"tokens", w.tokens}, {"targets", w.targets}}, w.ids, {}};
  }
  std::int64_t loss_count(const Batch& batch) const override {
    return count_targets(batch.tensors[1].second);
  }
  at::Tensor loss_sum(const NamedTensors& t, bool training) override {
    return next_token_loss(model_->forward(t[0].second, training), t[1].second);
  }
  Model& model() { return *model_; }

 private:
  TextData data_;
  std::unique_ptr<Model> model_;
};

// Parts of a batch with very different numbers of targets: loss and gradients are PyTorch's own mean over
// all.
TEST(Accumulation, CountsTargetsAsPyTorchDoes) {
  const Folder folder;
  MaskedText by_hand(folder);
  const Batch batch = by_hand.train_batch(0, 4);
  const at::Tensor logits = by_hand.model().forward(batch.tensors[0].second, true);
  const at::Tensor loss =
      at::cross_entropy_loss(logits.reshape({-1, 256}), batch.tensors[1].second.reshape({-1}), {},
                             at::Reduction::Mean, /*ignore_index=*/-100);
  loss.backward();
  double squares = 0;
  for (const auto& [name, p] : by_hand.parameters()) squares += p.grad().square().sum().item<double>();
  for (const std::int64_t parts : {1, 2, 4}) {
    LoopConfig config = quick_config(folder, 1);
    config.micro_batches = parts;
    auto task = std::make_unique<MaskedText>(folder);
    auto adamw = make_adamw(task->parameters(), {});
    std::vector<StepEvent> steps;
    auto trainer = Trainer::create(config, std::move(task), std::move(*adamw),
                                   {[&](const StepEvent& e) { steps.push_back(e); }, {}});
    ASSERT_TRUE(trainer) << trainer.error().text();
    ASSERT_TRUE((*trainer)->run());
    ASSERT_EQ(steps.size(), 1u);
    EXPECT_NEAR(steps[0].loss, loss.item<double>(), 1e-5) << parts;
    EXPECT_NEAR(steps[0].grad_norm, std::sqrt(squares), 1e-5 * std::sqrt(squares)) << parts;
  }
}

}  // namespace
}  // namespace nanquest::trainer
