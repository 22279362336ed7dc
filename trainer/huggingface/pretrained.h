/// Room trainer/huggingface: models out of a Hugging Face folder (config.json and safetensors), trained and
/// put back as `from_pretrained` and PEFT load them.
///
///     PretrainedOptions options;
///     options.lora.on = true;
///     Result<std::unique_ptr<PretrainedModel>> model = load_pretrained("TinyLlama", options);
///     at::Tensor logits = (*model)->forward(tokens, /*training=*/true);
///     Status saved = (*model)->save_adapter("out/adapter");
///
/// Weights and modules are called what Hugging Face calls them ("model.layers.3.self_attn.q_proj.weight").
/// Never: prints, knows of tokenizers, losses and optimizers, uses a network.
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

/// How a folder's model is to be trained.
struct PretrainedOptions {
  LoraOptions lora;     ///< `lora.on`: adapters train, all weights of the folder are frozen
  std::string adapter;  ///< folder of PEFT's whose adapters are put in and trained on, with its rank, scale
                        ///< and dropout in place of those of `lora`; "" = fresh ones, if `lora.on`
  bool frozen = false;  ///< nothing trains: to sample or to measure
  AttentionForm attention = AttentionForm::fused;  ///< capped scores (Gemma 2) are written out in any case
  bool checkpointing = false;  ///< what a layer computes is computed again in backward, not kept
  at::Device device{at::kCPU};
  std::uint64_t seed = 42;  ///< of fresh adapters
};

/// Declares the settings of the group Model: lora, lora-r, lora-alpha, lora-dropout, lora-targets, adapter,
/// hf-attention, checkpointing.
void declare(SettingList& list, PretrainedOptions& options);
/// Names the first setting that makes no sense.
Status check(const PretrainedOptions& options);

/// What `forward` reads, on the device of the weights: int64 [batch, time] where nothing else is said.
struct DecoderInput {
  at::Tensor tokens;
  at::Tensor positions = {};  ///< place of each token in its text; undefined = 0, 1, 2, … in each row
  /// Number of the text that each token belongs to, of rows packed with several: a token sees its own text
  /// alone. Undefined = a row is one text. Padding at the end of a row needs none: attention never looks
  /// ahead.
  at::Tensor texts = {};
  /// Of a LLaVA: fp32 [images, channels, height, width], the images of the first row, then of the second, …;
  /// each takes the places of config().images->tokens() image tokens, which the rows must hold as many times.
  at::Tensor pixels = {};
  std::int64_t last = 0;  ///< logits of so many positions at the end are wanted alone; 0 = of all
};

/// A decoder with weights of a folder, or the one of a LLaVA with all that it sees with. Trained weights are
/// fp32, frozen ones are kept in their own format and computed with in that of the activations: fp32, or what
/// autocast around `forward` says. Not thread-safe.
class PretrainedModel : public Model {
 public:
  using Model::forward;
  /// Logits [batch, time or `last`, vocabulary]; dropout is active only if `training`.
  virtual at::Tensor forward(const DecoderInput& input, bool training) = 0;
  at::Tensor forward(const at::Tensor& tokens, bool training) override {
    return forward(DecoderInput{.tokens = tokens}, training);
  }

  /// What config.json says: vocabulary, longest text, end-of-text tokens, family, …
  virtual const DecoderConfig& config() const = 0;
  /// Weights that no training moves, by Hugging Face's names, in their own format.
  virtual NamedTensors frozen() const = 0;

  /// Writes a folder that `from_pretrained` loads and that gives the same logits: config.json, weights (in
  /// shards where they are large), the tokenizer's and other small files as they were. Adapters are merged
  /// into a copy of what they adapt. With `format` (fp32, fp16 or bf16) all weights are rounded to it;
  /// without, trained ones are fp32 and all others as they came. Each file is complete or absent, config.json
  /// comes last. `usage` if `folder` is the one that the weights came from.
  virtual Status save(const std::string& folder,
                      std::optional<at::ScalarType> format = std::nullopt) const = 0;
  /// Writes adapter_config.json and adapter_model.safetensors as PEFT loads them; `usage` without adapters.
  virtual Status save_adapter(const std::string& folder) const = 0;
};

/// Loads `folder`. Errors are one line: `unsupported` for an architecture, rope type or activation that is
/// not known (with those that are), `bad_file` for weights that are missing, surplus, misshapen or not
/// finite.
Result<std::unique_ptr<PretrainedModel>> load_pretrained(const std::string& folder,
                                                         const PretrainedOptions& options = {});

}  // namespace nanquest::trainer
