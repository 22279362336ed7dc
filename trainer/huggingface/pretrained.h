/// Room trainer/huggingface: models from a Hugging Face folder (config.json and safetensors), trained and
/// saved as `from_pretrained` and PEFT load them.
///
///     PretrainedOptions options;
///     options.lora.on = true;
///     Result<std::unique_ptr<PretrainedModel>> model = load_pretrained("TinyLlama", options);
///     at::Tensor logits = (*model)->forward(tokens, /*training=*/true);
///     Status saved = (*model)->save_adapter("out/adapter");
///
/// Weights and modules have Hugging Face's names ("model.layers.3.self_attn.q_proj.weight"). The room never
/// prints, does not know tokenizers, losses or optimizers, and uses no network.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "probe/base/result.h"
#include "trainer/config/setting_list.h"
#include "trainer/huggingface/decoder_config.h"
#include "trainer/huggingface/lora.h"
#include "trainer/model/attention.h"
#include "trainer/model/model.h"

namespace nanquest::trainer {

/// How a folder's model is trained.
struct PretrainedOptions {
  LoraOptions lora;     ///< `lora.on`: adapters train, all weights of the folder are frozen
  std::string adapter;  ///< folder of PEFT's with adapters to continue, with its rank, scale and dropout
                        ///< instead of those of `lora`; "" = new ones, if `lora.on`
  bool frozen = false;  ///< nothing trains: for sampling or measuring
  AttentionForm attention = AttentionForm::fused;  ///< capped scores (Gemma 2) are always written out
  bool checkpointing = false;  ///< a layer's values are computed again in backward, not kept
  at::Device device{at::kCPU};
  std::uint64_t seed = 42;  ///< for new adapters
};

/// Declares the settings of the group Model: lora, lora-r, lora-alpha, lora-dropout, lora-targets, adapter,
/// hf-attention, checkpointing.
void declare(SettingList& list, PretrainedOptions& options);
/// Names the first invalid setting.
Status check(const PretrainedOptions& options);

/// Inputs of `forward`, on the device of the weights: int64 [batch, time] unless stated otherwise.
struct DecoderInput {
  at::Tensor tokens;
  at::Tensor positions = {};  ///< place of each token in its text; undefined = 0, 1, 2, … in each row
  /// Number of the text that each token belongs to, of rows packed with several: a token sees its own text
  /// alone. Undefined = a row is one text. Padding at the end of a row needs none: attention never looks
  /// ahead.
  at::Tensor texts = {};
  /// For a LLaVA: fp32 [images, channels, height, width], the images of the first row, then of the second, ….
  /// Each replaces config().images->tokens() image tokens, and the rows must hold exactly that many.
  at::Tensor pixels = {};
  std::int64_t last = 0;  ///< logits of only this many positions at the end; 0 = of all
};

/// A decoder with weights of a folder, or that of a LLaVA with its vision part. Trained weights are fp32.
/// Frozen ones keep their own format and are used in that of the activations: fp32, or autocast's around
/// `forward`. Not thread-safe.
class PretrainedModel : public Model {
 public:
  using Model::forward;
  /// Logits [batch, time or `last`, vocabulary]; dropout is active only if `training`.
  virtual at::Tensor forward(const DecoderInput& input, bool training) = 0;
  at::Tensor forward(const at::Tensor& tokens, bool training) override {
    return forward(DecoderInput{.tokens = tokens}, training);
  }

  /// The contents of config.json: vocabulary, longest text, end-of-text tokens, family, …
  virtual const DecoderConfig& config() const = 0;
  /// Frozen weights by Hugging Face's names, in their own format.
  virtual NamedTensors frozen() const = 0;

  /// Writes a folder that `from_pretrained` loads and that gives the same logits: config.json, weights (in
  /// shards if they are large), the tokenizer's and other small files unchanged. Adapters are merged into a
  /// copy of the adapted weights. With `format` (fp32, fp16 or bf16) all weights are rounded to it; without,
  /// trained ones are fp32 and all others unchanged. Each file is complete or absent, config.json comes last.
  /// `usage` if `folder` is the one that the weights came from.
  virtual Status save(const std::string& folder,
                      std::optional<at::ScalarType> format = std::nullopt) const = 0;
  /// Writes adapter_config.json and adapter_model.safetensors as PEFT loads them; `usage` without adapters.
  virtual Status save_adapter(const std::string& folder) const = 0;
};

/// Loads `folder`. Errors are one line: `unsupported` for an unknown architecture, rope type or activation
/// (with the known ones), `bad_file` for weights that are missing, surplus, of a wrong shape or not finite.
Result<std::unique_ptr<PretrainedModel>> load_pretrained(const std::string& folder,
                                                         const PretrainedOptions& options = {});

}  // namespace nanquest::trainer
