/// The contents of config.json of a Hugging Face folder, as one struct for all families of decoders.
///
///     Result<DecoderConfig> config = read_decoder_config("TinyLlama");
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "probe/base/result.h"
#include "trainer/huggingface/image_config.h"

namespace nanquest::trainer {

/// Activation function of the MLP; `gelu_tanh` is the usual approximation of `gelu`, `quick_gelu` is
/// x·sigmoid(1.702·x).
enum class MlpActivation : std::uint8_t { silu, gelu, gelu_tanh, relu, quick_gelu };

/// How rotary embeddings are stretched to longer texts; `plain` is Hugging Face's "default".
enum class RopeType : std::uint8_t { plain, linear, dynamic, llama3, yarn };

/// Rotary position embedding. Fields have the names of transformers' rope_parameters.
struct RopeConfig {
  RopeType type = RopeType::plain;
  double theta = 10000;
  double factor = 1;
  double low_freq_factor = 1, high_freq_factor = 4;             ///< llama3
  double beta_fast = 32, beta_slow = 1;                         ///< yarn
  double attention_factor = 0, mscale = 0, mscale_all_dim = 0;  ///< yarn; 0 = not given
  bool truncate = true;                                         ///< yarn
  std::int64_t original_context = 0;                            ///< longest text before it was stretched
};

struct DecoderConfig {
  std::optional<ImageConfig> images;  ///< for a LLaVA, whose language model the other fields describe
  std::string family;                 ///< model_type: "llama", "qwen2", …
  std::string architecture;           ///< "LlamaForCausalLM"
  std::int64_t vocabulary = 0, width = 0, hidden = 0, depth = 0;
  std::int64_t heads = 0, key_heads = 0, head_width = 0;
  std::int64_t experts = 0, experts_per_token = 0;  ///< of Mixtral; 0 = one MLP for all tokens
  std::int64_t context = 0;                         ///< longest text (max_position_embeddings)
  double norm_eps = 1e-6;
  MlpActivation activation = MlpActivation::silu;
  RopeConfig rope, local_rope;  ///< the second for layers with a window; equal except in Gemma 3
  bool qkv_bias = false, out_bias = false, mlp_bias = false;
  bool qk_norm = false;  ///< RMS norm of queries and keys, per head
  bool tied_head = false;
  bool gpt2 = false;        ///< layer norms, learned positions, one matrix for q, k and v, no gate
  bool gemma = false;       ///< norms multiply by 1 + weight, embeddings by √width
  bool four_norms = false;  ///< Gemma 2 and 3: also after attention and MLP
  std::vector<std::int64_t>
      windows;  ///< per layer: number of tokens that it can see, including the current one; 0 = all before
  double score_divisor = 0;             ///< of attention scores; 0 = √head_width
  bool score_divisor_by_layer = false;  ///< GPT-2: times 1 + number of the layer
  double score_cap = 0, logit_cap = 0;  ///< x becomes cap·tanh(x / cap); 0 = none
  double embedding_dropout = 0, attention_dropout = 0, residual_dropout = 0;
  std::vector<std::int64_t> end_tokens;           ///< of generation_config.json, or else of config.json
  std::int64_t begin_token = -1, pad_token = -1;  ///< -1 = none

  /// Row of the token embedding that gets no gradient from lookups, as in transformers; -1 = none.
  std::int64_t padding_row = -1;

  /// Name of the module around the layers: "model", "transformer", "model.language_model".
  std::string root() const { return gpt2 ? "transformer" : images ? "model.language_model" : "model"; }
};

/// Reads `folder`/config.json and, for the tokens that end a text, generation_config.json. `unsupported` in
/// one line for an unknown value, with the known ones; `bad_file` for invalid values.
Result<DecoderConfig> read_decoder_config(const std::string& folder);

/// The same for the text of a config.json; errors call it `path`.
Result<DecoderConfig> parse_decoder_config(const std::string& text, const std::string& path);

}  // namespace nanquest::trainer
