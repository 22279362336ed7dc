#include "trainer/text/text_task.h"

#include <ATen/ATen.h>

#include <utility>

#include "trainer/text/next_token.h"

namespace nanquest::trainer {
namespace {

constexpr std::int64_t kBytes = 256;

/// ", 3 binary files skipped", or nothing if there are none.
std::string counted(std::int64_t n, const char* what) {
  return n > 0 ? ", " + std::to_string(n) + " " + what : "";
}

Batch batch_of(TextWindows windows) {
  return {{{"tokens", std::move(windows.tokens)}, {"targets", std::move(windows.targets)}},
          std::move(windows.ids),
          std::move(windows.texts)};
}

class TextTask final : public Task {
 public:
  TextTask(std::unique_ptr<Model> model, TextData data, const TextOptions& options)
      : model_(std::move(model)), data_(std::move(data)), options_(options) {}

  NamedTensors parameters() const override { return model_->parameters(); }
  NamedTensors buffers() const override { return model_->buffers(); }
  std::vector<AttentionHeads> attention() const override { return model_->attention(); }
  std::int64_t train_samples() const override { return data_.train_windows(); }
  Batch train_batch(std::int64_t position, std::int64_t size) const override {
    return batch_of(data_.train_batch(position, size));
  }
  std::int64_t eval_samples() const override { return data_.eval_windows(); }
  Batch eval_batch(std::int64_t first, std::int64_t size) const override {
    return batch_of(data_.eval_batch(first, size));
  }

  std::vector<Fault> faults(const Batch& batch) const override {
    return token_faults(batch.tensors[0].second, batch.tensors[1].second, kBytes, data_.context());
  }
  std::int64_t loss_count(const Batch& batch) const override {
    return count_targets(batch.tensors[1].second);
  }
  at::Tensor loss_sum(const NamedTensors& tensors, bool training) override {
    return next_token_loss(model_->forward(tensors[0].second, training), tensors[1].second,
                           training ? options_.z_loss : 0);
  }

  std::vector<std::string> description() const override {
    std::int64_t weights = 0;
    for (const auto& [name, p] : parameters()) weights += p.numel();
    return {"data: " + std::to_string(data_.files()) + " files, " + std::to_string(data_.bytes()) +
                " bytes, " + std::to_string(data_.train_windows()) + " windows to train on, " +
                std::to_string(data_.eval_windows()) + " held out" +
                counted(data_.skipped_binary(), "binary files skipped") +
                counted(data_.skipped_short(), "files too short") +
                counted(data_.skipped_other(), "other files passed over"),
            "model: " + std::to_string(weights) + " weights, " + model_->description() + ", on " +
                parameters().front().second.device().str()};
  }
  std::string fingerprint() const override { return model_->fingerprint(); }
  std::string data_fingerprint() const override { return data_.fingerprint(); }

 private:
  std::unique_ptr<Model> model_;
  TextData data_;
  TextOptions options_;
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

std::unique_ptr<Task> make_text_task(std::unique_ptr<Model> model, TextData data,
                                     const TextOptions& options) {
  return std::make_unique<TextTask>(std::move(model), std::move(data), options);
}

}  // namespace nanquest::trainer
