#include "trainer/yesno/yesno_task.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "trainer/text/next_token.h"

namespace nanquest::trainer {
namespace {

/// Whether `data` has pictures and a question for `model`.
Status check_data(const PretrainedModel& model, const PictureData& data) {
  const DecoderConfig& c = model.config();
  const auto wrong = [&](const std::string& what) {
    return Error{ErrorCode::usage, data.folder() + ": " + what,
                 "prepare it with this model: nanquest prepare --model FOLDER"};
  };
  const VisionConfig& vision = c.images->vision;
  if (data.shape() != std::vector<std::int64_t>{vision.channels, vision.image_size, vision.image_size})
    return wrong("pictures of " + std::to_string(data.shape()[1]) + " x " + std::to_string(data.shape()[2]) +
                 " pixels, the model sees " + std::to_string(vision.image_size) + " x " +
                 std::to_string(vision.image_size));
  const std::vector<std::int64_t>& question = data.question();
  const auto places = std::count(question.begin(), question.end(), c.images->image_token);
  if (places != c.images->tokens())
    return wrong("a picture has " + std::to_string(places) + " places in the question, the model needs " +
                 std::to_string(c.images->tokens()));
  for (const std::int64_t token : question)
    if (token >= c.vocabulary)
      return wrong("token " + std::to_string(token) + " of the question is not one of " +
                   std::to_string(c.vocabulary));
  if (std::max(data.yes(), data.no()) >= c.vocabulary)
    return wrong("an answer is a token that the model does not know");
  if (static_cast<std::int64_t>(question.size()) > c.context)
    return wrong("a question of " + std::to_string(question.size()) + " tokens, the model bears " +
                 std::to_string(c.context));
  return {};
}

class YesNoTask final : public Task {
 public:
  YesNoTask(std::unique_ptr<PretrainedModel> model, std::unique_ptr<PictureData> data,
            std::unique_ptr<PictureData> held_out)
      : model_(std::move(model)),
        data_(std::move(data)),
        held_out_(std::move(held_out)),
        question_(at::tensor(data_->question(), at::kLong)),
        answers_(at::tensor({data_->no(), data_->yes()}, at::kLong)) {}

  NamedTensors parameters() const override { return model_->parameters(); }
  std::int64_t train_samples() const override { return data_->train_rows(); }
  Batch train_batch(std::int64_t position, std::int64_t size) const override {
    return batch_of(data_->train_batch(position, size));
  }
  std::int64_t eval_samples() const override { return held_out_ ? held_out_->rows() : data_->eval_rows(); }
  Batch eval_batch(std::int64_t first, std::int64_t size) const override {
    return batch_of(held_out_ ? held_out_->batch(first, size) : data_->eval_batch(first, size));
  }
  std::int64_t loss_count(const Batch& batch) const override { return batch.tensors[0].second.size(0); }

  at::Tensor loss_sum(const NamedTensors& tensors, bool training) override {
    return next_token_loss(logits_of(tensors, training), tensors[2].second.unsqueeze(1));
  }

  Tally tally(const Batch& batch, const NamedTensors& on_device) override {
    const at::Tensor logits = logits_of(on_device, false);
    const at::Tensor labels = batch.tensors[2].second, two = logits.squeeze(1).to(at::kCPU, at::kDouble);
    const at::Tensor yes = two.select(1, 1).gt(two.select(1, 0));
    const auto count = [](const at::Tensor& which) {
      return static_cast<double>(which.sum().item<std::int64_t>());
    };
    // An answer that is NaN is neither of the two.
    const double broken = at::isfinite(two).all().item<bool>() ? 0 : std::numeric_limits<double>::quiet_NaN();
    const at::Tensor wanted = labels.eq(1);
    return {{"loss", next_token_loss(logits, on_device[2].second.unsqueeze(1)).item<double>()},
            {"count", static_cast<double>(labels.size(0))},
            {"positives", count(wanted)},
            {"negatives", count(wanted.logical_not())},
            {"true positives", count(yes.logical_and(wanted)) + broken},
            {"false positives", count(yes.logical_and(wanted.logical_not())) + broken}};
  }
  std::vector<Metric> metrics(const Tally& t) const override {
    return {{"loss", tallied(t, "loss") / tallied(t, "count")},
            {"tpr", tallied(t, "true positives") / tallied(t, "positives")},
            {"fpr", tallied(t, "false positives") / tallied(t, "negatives")}};
  }

  std::vector<std::string> description() const override {
    std::int64_t weights = 0;
    for (const auto& [name, p] : parameters()) weights += p.numel();
    std::vector<std::string> lines{"data: " + data_->description()};
    if (held_out_) lines.push_back("held-out data: " + held_out_->contents());
    lines.push_back("model: " + std::to_string(weights) + " weights, " + model_->description() + ", on " +
                    parameters().front().second.device().str());
    return lines;
  }
  std::string fingerprint() const override { return model_->fingerprint(); }
  std::string data_fingerprint() const override { return data_->fingerprint(); }

 private:
  Batch batch_of(PictureRows rows) const {
    const std::int64_t count = rows.labels.size(0);
    return {{{"pixels", std::move(rows.pixels)},
             {"tokens", question_.expand({count, -1}).contiguous()},
             {"labels", std::move(rows.labels)}},
            std::move(rows.ids),
            std::move(rows.texts)};
  }
  /// Of No and Yes: [samples, 1, 2].
  at::Tensor logits_of(const NamedTensors& tensors, bool training) {
    const at::Tensor logits =
        model_->forward({.tokens = tensors[1].second, .pixels = tensors[0].second, .last = 1}, training);
    return logits.index_select(-1, answers_.to(logits.device()));
  }

  std::unique_ptr<PretrainedModel> model_;
  std::unique_ptr<PictureData> data_, held_out_;
  at::Tensor question_, answers_;  ///< tokens, int64 on the CPU
};

}  // namespace

Error sees_no_pictures(const PretrainedModel& model) {
  return {ErrorCode::usage, "a " + model.config().family + " sees no pictures",
          "give --model the folder of a LLaVA"};
}

Result<std::unique_ptr<Task>> make_yesno_task(std::unique_ptr<PretrainedModel> model,
                                              std::unique_ptr<PictureData> data,
                                              std::unique_ptr<PictureData> held_out) {
  if (!model->config().images) return sees_no_pictures(*model);
  if (Status s = check_data(*model, *data); !s) return s.error();
  if (held_out) {
    if (Status s = check_data(*model, *held_out); !s) return s.error();
    if (held_out->question() != data->question() || held_out->yes() != data->yes() ||
        held_out->no() != data->no())
      return Error{ErrorCode::usage, held_out->folder() + ": asks another question than " + data->folder(),
                   "prepare both with the same --question"};
  }
  return std::unique_ptr<Task>(
      std::make_unique<YesNoTask>(std::move(model), std::move(data), std::move(held_out)));
}

}  // namespace nanquest::trainer
