#include "trainer/huggingface/decoder_config.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "probe/nanquest.h"
#include "trainer/checkpoint/strict_json.h"
#include "trainer/huggingface/activation.h"
#include "trainer/huggingface/config_reader.h"
#include "trainer/huggingface/rope_config.h"

namespace nanquest::trainer {
namespace {

constexpr int kDeepestConfig = 32;

/// Properties of a family that are not in config.json.
struct Family {
  const char* name;
  const char* architecture;
  std::int64_t head_width;  ///< 0 = width / heads
  bool tied;
  bool gemma = false, four_norms = false, qk_norm = false;
};

constexpr Family kFamilies[] = {
    {.name = "llama", .architecture = "LlamaForCausalLM", .head_width = 0, .tied = false},
    {.name = "mistral", .architecture = "MistralForCausalLM", .head_width = 0, .tied = false},
    {.name = "mixtral", .architecture = "MixtralForCausalLM", .head_width = 0, .tied = false},
    {.name = "qwen2", .architecture = "Qwen2ForCausalLM", .head_width = 0, .tied = false},
    {.name = "qwen3", .architecture = "Qwen3ForCausalLM", .head_width = 128, .tied = false, .qk_norm = true},
    {.name = "gemma", .architecture = "GemmaForCausalLM", .head_width = 256, .tied = true, .gemma = true},
    {.name = "gemma2",
     .architecture = "Gemma2ForCausalLM",
     .head_width = 256,
     .tied = true,
     .gemma = true,
     .four_norms = true},
    {.name = "gemma3_text",
     .architecture = "Gemma3ForCausalLM",
     .head_width = 256,
     .tied = true,
     .gemma = true,
     .four_norms = true,
     .qk_norm = true},
    {.name = "gpt2", .architecture = "GPT2LMHeadModel", .head_width = 0, .tied = true},
};

const Family& family_of(const ConfigReader& file) {
  const std::string given = file.text("model_type", "");
  std::string known;
  for (const Family& family : kFamilies) {
    if (given == family.name) return family;
    known.append(known.empty() ? "" : ", ").append(family.name);
  }
  known += ", llava";
  if (given.empty()) file.wrong("model_type is missing");
  file.unknown("model_type", given, known);
}

/// Refuses options that would need another computation.
void check_extras(const ConfigReader& file, const Family& family) {
  const std::vector<std::string> given = file.texts("architectures");
  if (!given.empty() && std::find(given.begin(), given.end(), family.architecture) == given.end())
    file.unknown("architectures", given.front(), family.architecture);
  if (file.has("quantization_config"))
    file.unknown("quantization_config", "given", "weights that are not quantized");
  for (const char* key : {"use_bidirectional_attention", "add_cross_attention"})
    if (file.flag(key, false)) file.unknown(key, "true", "false");
}

void read_gpt2(const ConfigReader& file, DecoderConfig& c) {
  c.gpt2 = true;
  c.width = file.size("n_embd");
  c.depth = file.size("n_layer");
  c.heads = c.key_heads = file.size("n_head");
  c.context = file.size("n_positions");
  c.hidden = file.size("n_inner", 4 * c.width);
  c.norm_eps = file.number("layer_norm_epsilon", 1e-5);
  c.activation = file.word<MlpActivation>("activation_function", "gelu_new", kActivations);
  c.qkv_bias = c.out_bias = c.mlp_bias = true;
  c.embedding_dropout = file.number("embd_pdrop", 0.1);
  c.attention_dropout = file.number("attn_pdrop", 0.1);
  c.residual_dropout = file.number("resid_pdrop", 0.1);
  if (c.width % c.heads != 0) file.wrong("n_embd is no multiple of n_head");
  c.head_width = c.width / c.heads;
  if (!file.flag("scale_attn_weights", true)) c.score_divisor = 1;
  c.score_divisor_by_layer = file.flag("scale_attn_by_inverse_layer_idx", false);
  c.windows.assign(static_cast<std::size_t>(c.depth), 0);
}

/// The window of layer `i` if config.json does not list the kinds of layers.
std::int64_t usual_window(const ConfigReader& file, const DecoderConfig& c, std::int64_t window,
                          std::int64_t i) {
  if (c.family == "mistral" || c.family == "mixtral") return window;
  if (c.family == "gemma2") return (i + 1) % 2 != 0 ? window : 0;
  if (c.family == "gemma3_text") return (i + 1) % file.size("sliding_window_pattern", 6) != 0 ? window : 0;
  const bool qwen = c.family == "qwen2" || c.family == "qwen3";
  return qwen && static_cast<double>(i) >= file.number("max_window_layers", 28) ? window : 0;
}

void read_windows(const ConfigReader& file, DecoderConfig& c) {
  const bool qwen = c.family == "qwen2" || c.family == "qwen3";
  const bool gemma = c.family == "gemma2" || c.family == "gemma3_text";
  const std::int64_t usual = qwen || gemma || c.family == "mistral" ? 4096 : 0;
  std::int64_t window = file.none("sliding_window") ? 0 : file.size("sliding_window", usual);
  if (qwen && !file.flag("use_sliding_window", false)) window = 0;
  const std::vector<std::string> kinds =
      qwen || gemma ? file.texts("layer_types") : std::vector<std::string>{};
  if (!kinds.empty() && kinds.size() != static_cast<std::size_t>(c.depth))
    file.wrong("layer_types has " + std::to_string(kinds.size()) + " entries for " + std::to_string(c.depth) +
               " layers");
  for (std::int64_t i = 0; i < c.depth; ++i) {
    if (kinds.empty()) {
      c.windows.push_back(usual_window(file, c, window, i));
      continue;
    }
    const std::string& kind = kinds[static_cast<std::size_t>(i)];
    if (kind != "full_attention" && kind != "sliding_attention")
      file.unknown("layer_types", kind, "full_attention, sliding_attention");
    if (kind == "sliding_attention" && window == 0) file.wrong("sliding_window is missing");
    c.windows.push_back(kind == "sliding_attention" ? window : 0);
  }
}

void read_experts(const ConfigReader& file, DecoderConfig& c) {
  c.experts = file.size("num_local_experts", 8);
  c.experts_per_token = file.size("num_experts_per_tok", 2);
  if (c.experts > 4096) file.wrong(std::to_string(c.experts) + " experts are more than 4096");
  if (c.experts_per_token > c.experts) file.wrong("num_experts_per_tok is more than num_local_experts");
  if (file.number("router_jitter_noise", 0) > 0) file.unknown("router_jitter_noise", "above 0", "0");
}

void read_llama_like(const ConfigReader& file, const Family& family, DecoderConfig& c) {
  c.width = file.size("hidden_size");
  c.depth = file.size("num_hidden_layers");
  c.heads = file.size("num_attention_heads");
  c.hidden = file.size("intermediate_size");
  c.context = file.size("max_position_embeddings");
  // The first Llamas have as many heads for keys as for queries, without an entry.
  c.key_heads =
      c.family == "llama" ? file.size("num_key_value_heads", c.heads) : file.size("num_key_value_heads");
  if (!file.has("head_dim") && family.head_width == 0 && c.width % c.heads != 0)
    file.wrong("hidden_size is no multiple of num_attention_heads");
  c.head_width = file.size("head_dim", family.head_width > 0 ? family.head_width : c.width / c.heads);
  if (c.head_width % 2 != 0) file.wrong("head_dim is odd: halves of it are rotated");
  c.norm_eps = file.number("rms_norm_eps", 1e-6);
  c.gemma = family.gemma;
  c.four_norms = family.four_norms;
  c.qk_norm = family.qk_norm;
  // Gemma's first files say gelu but always meant its approximation.
  const char* key = family.four_norms ? "hidden_activation" : "hidden_act";
  c.activation = file.word<MlpActivation>(key, family.gemma ? "gelu_pytorch_tanh" : "silu", kActivations);
  if (c.family == "gemma" && c.activation == MlpActivation::gelu) c.activation = MlpActivation::gelu_tanh;
  const bool bias = c.family != "mistral" && c.family != "mixtral" && c.family != "qwen2" &&
                    file.flag("attention_bias", false);
  c.qkv_bias = bias || c.family == "qwen2";
  c.out_bias = bias;
  c.mlp_bias = c.family == "llama" && file.flag("mlp_bias", false);
  c.attention_dropout = file.number("attention_dropout", 0);
  if (family.four_norms) {
    c.score_divisor = std::sqrt(file.number("query_pre_attn_scalar", 256, 1e-6));
    const auto cap = [&](const char* key, double usual) {
      return file.none(key) ? 0 : file.number(key, c.family == "gemma2" ? usual : 0);
    };
    c.logit_cap = cap("final_logit_softcapping", 30);
    // transformers computes Gemma 3 without it, whatever the file says.
    if (c.family == "gemma2") c.score_cap = cap("attn_logit_softcapping", 50);
  }
  if (c.family == "mixtral") read_experts(file, c);
  read_windows(file, c);
  read_rope(file, c);
}

void check(const ConfigReader& file, const DecoderConfig& c) {
  if (c.depth > 10000) file.wrong(std::to_string(c.depth) + " layers are more than 10000");
  if (c.heads % c.key_heads != 0)
    file.wrong(std::to_string(c.heads) + " heads can't share " + std::to_string(c.key_heads) + " of keys");
  for (const double share : {c.embedding_dropout, c.attention_dropout, c.residual_dropout})
    if (share >= 1) file.wrong("a dropout is " + std::to_string(share) + ", not below 1");
}

/// Properties of a language model inside a LLaVA that are not in its text_config: the first such files hold
/// little more than its family.
nlohmann::json completed(nlohmann::json text) {
  const auto usual = [&](const char* key, std::int64_t value) {
    if (!text.contains(key) || text[key].is_null()) text[key] = value;
  };
  if (!text.contains("model_type")) text["model_type"] = "llama";
  const bool llama = text["model_type"] == "llama";
  if (!llama && text["model_type"] != "mistral") return text;
  usual("vocab_size", 32000);
  usual("hidden_size", 4096);
  usual("intermediate_size", llama ? 11008 : 14336);
  usual("num_hidden_layers", 32);
  usual("num_attention_heads", 32);
  usual("max_position_embeddings", llama ? 2048 : 131072);
  if (!llama) usual("num_key_value_heads", 8);
  return text;
}

DecoderConfig read_or_throw(const nlohmann::json& object, const std::string& where);

/// A LLaVA: a language model and its vision part. `where` as in ConfigReader.
DecoderConfig read_llava(const nlohmann::json& object, const ConfigReader& file, const std::string& where) {
  check_extras(
      file,
      {.name = "llava", .architecture = "LlavaForConditionalGeneration", .head_width = 0, .tied = false});
  (void)file.inside("text_config");  // must exist
  const nlohmann::json text = completed(object["text_config"]);
  const ConfigReader language(text, where + "text_config.");
  const std::string family = language.text("model_type", "");
  if (family != "llama" && family != "mistral" && family != "qwen2" && family != "qwen3")
    language.unknown("model_type", family, "llama, mistral, qwen2, qwen3");
  DecoderConfig c = read_or_throw(text, where + "text_config.");
  c.tied_head = c.tied_head || file.flag("tie_word_embeddings", false);
  c.images = read_image_config(file);
  if (c.images->image_token >= c.vocabulary)
    file.wrong("image_token_index is " + std::to_string(c.images->image_token) + ", the vocabulary has " +
               std::to_string(c.vocabulary) + " tokens");
  return c;
}

DecoderConfig read_or_throw(const nlohmann::json& object, const std::string& where) {
  const ConfigReader file(object, where);
  if (file.text("model_type", "") == "llava") return read_llava(object, file, where);
  const Family& family = family_of(file);
  check_extras(file, family);
  DecoderConfig c;
  c.family = family.name;
  c.architecture = family.architecture;
  c.vocabulary = file.size("vocab_size");
  c.tied_head = file.flag("tie_word_embeddings", family.tied);
  if (c.family == "gpt2") {
    read_gpt2(file, c);
  } else {
    read_llama_like(file, family, c);
  }
  check(file, c);
  c.end_tokens = file.tokens("eos_token_id");
  if (const auto begin = file.tokens("bos_token_id"); !begin.empty()) c.begin_token = begin.front();
  if (const auto pad = file.tokens("pad_token_id"); !pad.empty()) c.pad_token = pad.front();
  if (family.gemma && !file.has("pad_token_id") && !file.none("pad_token_id")) c.pad_token = 0;
  if (c.gpt2 || c.pad_token == -1) {
    if (!c.gpt2 && file.has("pad_token_id")) c.padding_row = c.vocabulary - 1;
    return c;
  }
  // Counts like torch.nn.Embedding: negative rows from the end.
  c.padding_row = c.pad_token < 0 ? c.vocabulary + c.pad_token : c.pad_token;
  if (c.padding_row < 0 || c.padding_row >= c.vocabulary)
    file.wrong("pad_token_id is " + std::to_string(c.pad_token) + ", no token");
  return c;
}

}  // namespace

Result<DecoderConfig> parse_decoder_config(const std::string& text, const std::string& path) {
  try {
    return read_or_throw(parse_strictly(text, "the file", kDeepestConfig), path + ": ");
  } catch (const Refused& e) {
    return e.error;
  } catch (const BadFile& e) {
    return Error{ErrorCode::bad_file, path + ": " + e.what,
                 "give the config.json of a model as it was published"};
  }
}

Result<DecoderConfig> read_decoder_config(const std::string& folder) {
  const std::string path = folder + "/config.json";
  std::error_code ec;
  if (!std::filesystem::exists(path, ec))
    return Error{ErrorCode::bad_file, folder + " is no folder of a Hugging Face model: it has no config.json",
                 "give the folder that save_pretrained or a download made"};
  Result<std::string> text = read_whole_file(path, kLargestConfig);
  if (!text) return text.error();
  Result<DecoderConfig> config = parse_decoder_config(*text, path);
  const std::string generation = folder + "/generation_config.json";
  if (!config || !std::filesystem::exists(generation, ec)) return config;
  Result<std::string> more = read_whole_file(generation, kLargestConfig);
  if (!more) return more.error();
  try {
    const nlohmann::json object = parse_strictly(*more, "the file", kDeepestConfig);
    const std::vector<std::int64_t> tokens = ConfigReader(object, generation + ": ").tokens("eos_token_id");
    if (!tokens.empty()) config->end_tokens = tokens;
  } catch (const Refused& e) {
    return e.error;
  } catch (const BadFile& e) {
    return Error{ErrorCode::bad_file, generation + ": " + e.what, "mend it or take it away"};
  }
  return config;
}

}  // namespace nanquest::trainer
