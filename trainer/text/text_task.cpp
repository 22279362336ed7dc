#include "trainer/text/text_task.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "trainer/text/next_token.h"

namespace nanquest::trainer {
namespace {

Batch batch_of(TokenRows rows) {
  Batch batch{{{"tokens", std::move(rows.tokens)}, {"targets", std::move(rows.targets)}},
              std::move(rows.ids),
              std::move(rows.texts)};
  if (rows.parts.defined()) {
    batch.tensors.emplace_back("positions", std::move(rows.positions));
    batch.tensors.emplace_back("texts", std::move(rows.parts));
  }
  return batch;
}

class TextTask final : public Task {
 public:
  TextTask(std::unique_ptr<Model> model, std::unique_ptr<TokenData> data, const TextOptions& options,
           LogitsOf logits)
      : model_(std::move(model)), data_(std::move(data)), options_(options), logits_(std::move(logits)) {
    if (!logits_)
      logits_ = [this](const NamedTensors& batch, bool training) {
        return model_->forward(batch[0].second, training);
      };
  }

  NamedTensors parameters() const override { return model_->parameters(); }
  NamedTensors buffers() const override { return model_->buffers(); }
  std::vector<AttentionHeads> attention() const override { return model_->attention(); }
  std::int64_t train_samples() const override { return data_->train_rows(); }
  Batch train_batch(std::int64_t position, std::int64_t size) const override {
    return batch_of(data_->train_batch(position, size));
  }
  std::int64_t eval_samples() const override { return data_->eval_rows(); }
  Batch eval_batch(std::int64_t first, std::int64_t size) const override {
    return batch_of(data_->eval_batch(first, size));
  }
  void even_out(Batch& a, Batch& b) const override {
    const std::int64_t time = std::max(a.tensors[0].second.size(1), b.tensors[0].second.size(1));
    for (Batch* batch : {&a, &b})
      for (auto& [name, t] : batch->tensors)
        // The text number of padding is one that no text has.
        t = filled_up(t, time,
                      name == "tokens"    ? data_->padding()
                      : name == "targets" ? kLeftOut
                      : name == "texts"   ? std::numeric_limits<std::int32_t>::max()
                                          : 0);
  }

  std::vector<Fault> faults(const Batch& batch) const override {
    return token_faults(batch.tensors[0].second, batch.tensors[1].second, options_.vocabulary,
                        options_.longest);
  }
  std::int64_t loss_count(const Batch& batch) const override {
    return count_targets(batch.tensors[1].second);
  }
  at::Tensor loss_sum(const NamedTensors& tensors, bool training) override {
    return next_token_loss(logits_(tensors, training), tensors[1].second, training ? options_.z_loss : 0);
  }

  std::vector<std::string> description() const override {
    std::int64_t weights = 0;
    for (const auto& [name, p] : parameters()) weights += p.numel();
    return {"data: " + data_->description(), "model: " + std::to_string(weights) + " weights, " +
                                                 model_->description() + ", on " +
                                                 parameters().front().second.device().str()};
  }
  std::string fingerprint() const override { return model_->fingerprint(); }
  std::string data_fingerprint() const override { return data_->fingerprint(); }

 private:
  std::unique_ptr<Model> model_;
  std::unique_ptr<TokenData> data_;
  TextOptions options_;
  LogitsOf logits_;
};

}  // namespace

void declare(SettingList& list, TextOptions& options) {
  list.group("Optimizer");
  list.add("z-loss", options.z_loss,
           "weight of the squared log of softmax's sum in the training loss (0 = none, 1e-4 is usual)");
  list.check([&options]() -> Status {
    if (options.z_loss >= 0) return {};
    return Error{ErrorCode::usage, "z-loss must not be negative", "try 1e-4"};
  });
}

std::unique_ptr<Task> make_text_task(std::unique_ptr<Model> model, std::unique_ptr<TokenData> data,
                                     const TextOptions& options, LogitsOf logits) {
  TextOptions all = options;
  if (all.vocabulary == 0) all.vocabulary = data->vocabulary();
  if (all.longest == 0) all.longest = data->longest();
  return std::make_unique<TextTask>(std::move(model), std::move(data), all, std::move(logits));
}

std::unique_ptr<Task> make_text_task(std::unique_ptr<Model> model, TextData data,
                                     const TextOptions& options) {
  return make_text_task(std::move(model), std::make_unique<TextData>(std::move(data)), options);
}

}  // namespace nanquest::trainer
