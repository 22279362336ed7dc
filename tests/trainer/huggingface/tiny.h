/// Folders of small models with random weights.
#pragma once

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "tests/trainer/helpers.h"
#include "trainer/checkpoint/safetensors.h"

namespace nanquest::trainer::test {

/// config.json of a Llama of two layers.
inline nlohmann::json tiny_llama() {
  return {{"model_type", "llama"},
          {"architectures", {"LlamaForCausalLM"}},
          {"vocab_size", 31},
          {"hidden_size", 16},
          {"intermediate_size", 24},
          {"num_hidden_layers", 2},
          {"num_attention_heads", 4},
          {"num_key_value_heads", 2},
          {"max_position_embeddings", 32},
          {"rms_norm_eps", 1e-5},
          {"rope_theta", 10000.0},
          {"tie_word_embeddings", false}};
}

/// Its weights, by a hand-written list of names and shapes.
inline NamedTensors tiny_llama_weights() {
  at::manual_seed(5);
  NamedTensors weights;
  const auto add = [&](const std::string& name, at::IntArrayRef shape) {
    weights.emplace_back(name, at::randn(shape, at::kFloat) * 0.2);
  };
  add("model.embed_tokens.weight", {31, 16});
  for (int i = 0; i < 2; ++i) {
    const std::string layer = "model.layers." + std::to_string(i) + ".";
    add(layer + "self_attn.q_proj.weight", {16, 16});
    add(layer + "self_attn.k_proj.weight", {8, 16});
    add(layer + "self_attn.v_proj.weight", {8, 16});
    add(layer + "self_attn.o_proj.weight", {16, 16});
    add(layer + "mlp.gate_proj.weight", {24, 16});
    add(layer + "mlp.up_proj.weight", {24, 16});
    add(layer + "mlp.down_proj.weight", {16, 24});
    add(layer + "input_layernorm.weight", {16});
    add(layer + "post_attention_layernorm.weight", {16});
  }
  add("model.norm.weight", {16});
  add("lm_head.weight", {31, 16});
  return weights;
}

inline at::Tensor& weight(NamedTensors& weights, const std::string& name) {
  for (auto& [n, t] : weights)
    if (n == name) return t;
  throw std::out_of_range(name);
}

inline std::string write_folder(const std::string& folder, const nlohmann::json& config,
                                const NamedTensors& weights) {
  write_file(folder + "/config.json", config.dump());
  if (const Status s = write_safetensors(folder + "/model.safetensors", weights, {}); !s)
    throw std::runtime_error(s.error().text());
  return folder;
}

inline std::string write_tiny_llama(const std::string& folder) {
  return write_folder(folder, tiny_llama(), tiny_llama_weights());
}

}  // namespace nanquest::trainer::test
