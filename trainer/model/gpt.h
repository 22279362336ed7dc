/// A byte-level GPT with the switches that decide whether it survives half precision.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "probe/base/result.h"
#include "trainer/config/setting_list.h"
#include "trainer/model/attention.h"
#include "trainer/model/model.h"

namespace nanquest::trainer {

enum class NormPlace : std::uint8_t { pre, post };
enum class Activation : std::uint8_t { gelu, relu2, swiglu };
struct GptConfig {
  std::int64_t depth = 4, width = 128, heads = 4;
  std::int64_t context = 128;  ///< longest sequence, in bytes
  std::int64_t hidden = 0;  ///< width inside the MLP; 0 = 4·width (8/3·width for swiglu, rounded up to 8)
  NormPlace norm = NormPlace::pre;
  bool qk_norm = false;  ///< normalise queries and keys per head: bounds the attention scores
  Activation activation = Activation::gelu;
  double init_std = 0.02;  ///< projections into the residual stream get init_std / √(2·depth)
  double dropout = 0.0;    ///< after the embedding and before each addition to the residual stream
  bool tied_head = true;   ///< the output layer reuses the token embedding
  AttentionForm attention = AttentionForm::fused;
  std::int64_t vocabulary = 256;  ///< tokens; no setting, as text is bytes here
  bool watch_logits = false;      ///< `Model::attention` gives the layers; costs the product of q and k again

  /// `hidden` with its default filled in.
  std::int64_t hidden_width() const;
};

/// Declares the settings of the group Model.
void declare(SettingList& list, GptConfig& config);
/// Names the first setting that makes no sense.
Status check(const GptConfig& config);

/// Builds the model with weights that depend on `config` and `seed` only.
Result<std::unique_ptr<Model>> make_gpt(const GptConfig& config, std::uint64_t seed, at::Device device);

}  // namespace nanquest::trainer
