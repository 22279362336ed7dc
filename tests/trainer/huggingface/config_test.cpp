// config.json from outside: known values are read with transformers' defaults, unknown ones are named.
#include "tests/trainer/huggingface/tiny.h"
#include "trainer/huggingface/decoder_config.h"
#include "trainer/huggingface/rope.h"

namespace nanquest::trainer {
namespace {

using nlohmann::json;

json with(const std::string& key, const json& value) {
  json config = test::tiny_llama();
  config[key] = value;
  return config;
}

Result<DecoderConfig> parsed(const json& config) {
  return parse_decoder_config(config.dump(), "m/config.json");
}

/// As the first LLaVA-1.5 with seven billion weights was published: usual values of its parts are left out.
json published_llava() {
  return {{"architectures", {"LlavaForConditionalGeneration"}},
          {"ignore_index", -100},
          {"image_token_index", 32000},
          {"model_type", "llava"},
          {"pad_token_id", 32001},
          {"projector_hidden_act", "gelu"},
          {"text_config",
           {{"architectures", {"LlamaForCausalLM"}},
            {"max_position_embeddings", 4096},
            {"model_type", "llama"},
            {"rms_norm_eps", 1e-05},
            {"vocab_size", 32064}}},
          {"tie_word_embeddings", false},
          {"vision_config",
           {{"hidden_size", 1024},
            {"image_size", 336},
            {"intermediate_size", 4096},
            {"model_type", "clip_vision_model"},
            {"num_attention_heads", 16},
            {"num_hidden_layers", 24},
            {"patch_size", 14},
            {"vocab_size", 32000}}},
          {"vision_feature_layer", -2},
          {"vision_feature_select_strategy", "default"}};
}

TEST(DecoderConfig, OfALlavaAsItWasPublished) {
  const auto c = parsed(published_llava());
  ASSERT_TRUE(c) << c.error().text();
  ASSERT_TRUE(c->images);
  EXPECT_EQ(c->root(), "model.language_model");
  EXPECT_EQ(std::tuple(c->width, c->hidden, c->depth, c->heads, c->key_heads, c->context),
            std::tuple(4096, 11008, 32, 32, 32, 4096));
  EXPECT_EQ(c->images->tokens(), 576);
  EXPECT_EQ(c->images->features, std::vector<std::int64_t>{23});
  EXPECT_EQ(c->images->vision.activation, MlpActivation::quick_gelu);
  EXPECT_EQ(c->images->image_token, 32000);
}

TEST(DecoderConfig, WhatALlavaCanNotBeIsNamed) {
  const auto refused = [](const char* pointer, const json& value) -> std::string {
    json config = published_llava();
    config[json::json_pointer(pointer)] = value;
    const auto found = parsed(config);
    return found ? "" : found.error().text();
  };
  for (const auto& [pointer, value, text] : std::initializer_list<std::tuple<const char*, json, const char*>>{
           {"/text_config/model_type", "llava", "text_config.model_type \"llava\" is not known"},
           {"/text_config/hidden_act", "mish", "m/config.json: text_config.hidden_act \"mish\""},
           {"/vision_config/hidden_act", "mish", "m/config.json: vision_config.hidden_act \"mish\""},
           {"/vision_config/num_attention_heads", 5, "vision_config.hidden_size is no multiple"},
           {"/vision_config/patch_size", 337, "patch_size is more than image_size"},
           {"/vision_config", nullptr, "vision_config is not an object"},
           {"/text_config", 7, "text_config is not an object"},
           {"/vision_feature_layer", -26, "vision_feature_layer is -26, the tower has 24 layers"},
           {"/vision_feature_layer", "last", "vision_feature_layer"},
           {"/image_token_index", 32064, "image_token_index is 32064, the vocabulary has 32064 tokens"},
           {"/architectures", {"LlavaNextForConditionalGeneration"}, "known: LlavaForConditionalGeneration"},
           {"/projector_hidden_act", "mish", "projector_hidden_act \"mish\""}})
    EXPECT_NE(refused(pointer, value).find(text), std::string::npos)
        << pointer << ": " << refused(pointer, value);
}

TEST(DecoderConfig, WhatIsNotKnownIsNamedWithWhatIs) {
  const std::tuple<json, ErrorCode, const char*> cases[] = {
      {with("model_type", "mamba"), ErrorCode::unsupported,
       "m/config.json: model_type \"mamba\" is not known (known: llama, mistral, mixtral, qwen2, qwen3, "
       "gemma, "
       "gemma2, "
       "gemma3_text, gpt2, llava)"},
      {with("hidden_act", "mish"), ErrorCode::unsupported,
       "m/config.json: hidden_act \"mish\" is not known (known: silu, swish, gelu, gelu_new, "
       "gelu_pytorch_tanh, "
       "quick_gelu, relu)"},
      {with("rope_scaling", {{"rope_type", "longrope"}, {"factor", 2}}), ErrorCode::unsupported,
       "m/config.json: rope_scaling.rope_type \"longrope\" is not known (known: default, linear, dynamic, "
       "llama3, "
       "yarn)"},
      {with("architectures", {"LlamaForSequenceClassification"}), ErrorCode::unsupported,
       "m/config.json: architectures \"LlamaForSequenceClassification\" is not known (known: "
       "LlamaForCausalLM)"},
      {with("quantization_config", {{"bits", 4}}), ErrorCode::unsupported, "weights that are not quantized"},
      {with("partial_rotary_factor", 0.5), ErrorCode::unsupported, "partial_rotary_factor"},
      {with("rope_scaling", {{"rope_type", "linear"}}), ErrorCode::bad_file,
       "rope_scaling.factor is missing"},
      {with("rope_scaling", {{"rope_type", "linear"}, {"factor", -2}}), ErrorCode::bad_file, "factor is -2"},
      {with("rope_scaling", 7), ErrorCode::bad_file, "rope_scaling is not an object"},
      {with("hidden_size", 0), ErrorCode::bad_file, "hidden_size is 0, not a number from 1 to 1073741824"},
      {with("hidden_size", "16"), ErrorCode::bad_file, "hidden_size is \"16\""},
      {with("hidden_size", 1e300), ErrorCode::bad_file, "hidden_size"},
      {with("hidden_size", 17), ErrorCode::bad_file, "no multiple"},
      {with("hidden_size", nullptr), ErrorCode::bad_file, "hidden_size is missing"},
      {with("num_key_value_heads", 3), ErrorCode::bad_file, "4 heads can't share 3 of keys"},
      {with("head_dim", 5), ErrorCode::bad_file, "head_dim is odd"},
      {with("num_hidden_layers", 1000000), ErrorCode::bad_file, "more than 10000"},
      {with("attention_dropout", 1.5), ErrorCode::bad_file, "dropout"},
      {with("pad_token_id", 31), ErrorCode::bad_file, "pad_token_id is 31, no token"},
      {with("eos_token_id", {"a"}), ErrorCode::bad_file, "not a token"},
      {with("tie_word_embeddings", 1), ErrorCode::bad_file, "neither true nor false"},
  };
  for (const auto& [config, code, text] : cases) {
    const auto found = parsed(config);
    ASSERT_FALSE(found) << text;
    EXPECT_EQ(found.error().code, code) << text;
    EXPECT_NE(found.error().text().find(text), std::string::npos) << found.error().text();
    EXPECT_EQ(found.error().text().find('\n'), std::string::npos);
  }
}

TEST(DecoderConfig, TextThatIsNoConfigIsRefused) {
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += R"({"a":)";
  for (const std::string& text :
       {std::string(), std::string("[]"), std::string("{"), std::string("\0\0", 2),
        std::string(R"({"a":1,"a":2})"), deep, std::string(R"({"model_type":7})")}) {
    const auto found = parse_decoder_config(text, "m/config.json");
    ASSERT_FALSE(found) << text.substr(0, 20);
    EXPECT_EQ(found.error().code, ErrorCode::bad_file);
    EXPECT_LT(found.error().text().size(), 300u);
  }
}

TEST(DecoderConfig, DefaultsAreThoseOfTheFamily) {
  json config = test::tiny_llama();
  config.erase("num_key_value_heads");
  EXPECT_EQ(parsed(config)->key_heads, 4);
  config["model_type"] = "mistral";
  config.erase("architectures");
  EXPECT_FALSE(parsed(config));
  config["num_key_value_heads"] = 4;
  EXPECT_EQ(parsed(config)->windows, (std::vector<std::int64_t>{4096, 4096}));
  config["sliding_window"] = nullptr;
  EXPECT_EQ(parsed(config)->windows, (std::vector<std::int64_t>{0, 0}));
  config["model_type"] = "gemma2";
  config["sliding_window"] = 9;
  config.erase("tie_word_embeddings");
  const auto gemma = parsed(config);
  EXPECT_EQ(gemma->windows, (std::vector<std::int64_t>{9, 0}));
  EXPECT_EQ(std::tuple(gemma->score_cap, gemma->logit_cap, gemma->score_divisor),
            std::tuple(50.0, 30.0, 16.0));
  EXPECT_TRUE(gemma->tied_head);
  EXPECT_EQ(std::tuple(gemma->pad_token, gemma->padding_row), std::tuple(0, 0));
  EXPECT_EQ(gemma->head_width, 256);
}

TEST(DecoderConfig, TokensThatEndATextAreThoseOfGeneration) {
  const test::Folder folder;
  test::write_file(folder / "config.json", with("eos_token_id", 2).dump());
  EXPECT_EQ(read_decoder_config(folder.path())->end_tokens, (std::vector<std::int64_t>{2}));
  test::write_file(folder / "generation_config.json", R"({"eos_token_id":[3,4]})");
  EXPECT_EQ(read_decoder_config(folder.path())->end_tokens, (std::vector<std::int64_t>{3, 4}));
  test::write_file(folder / "generation_config.json", "{");
  EXPECT_EQ(read_decoder_config(folder.path()).error().code, ErrorCode::bad_file);
}

TEST(DecoderConfig, AFolderWithoutOneIsNamed) {
  const test::Folder folder;
  EXPECT_EQ(read_decoder_config(folder.path()).error().text(),
            folder.path() +
                " is no folder of a Hugging Face model: it has no config.json (give the folder that "
                "save_pretrained or a download made)");
}

// By hand: width 4 and theta 100 turn by 1 and 1/10 a position.
TEST(Rope, FrequenciesOfPlainAndLinear) {
  const at::Tensor plain = rope_frequencies({.theta = 100}, 4, 32, 32);
  EXPECT_TRUE(at::allclose(plain, at::tensor({1.0f, 0.1f})));
  const at::Tensor linear =
      rope_frequencies({.type = RopeType::linear, .theta = 100, .factor = 4}, 4, 32, 32);
  EXPECT_TRUE(at::allclose(linear, at::tensor({0.25f, 0.025f})));
}

TEST(Rope, DynamicIsPlainUpToTheContextAndSlowerBeyond) {
  const RopeConfig dynamic{.type = RopeType::dynamic, .theta = 100, .factor = 2};
  EXPECT_TRUE(at::equal(rope_frequencies(dynamic, 4, 32, 32), rope_frequencies({.theta = 100}, 4, 32, 32)));
  // theta becomes 100 · (2 · 64 / 32 - 1)^(4 / 2) = 900.
  EXPECT_TRUE(at::allclose(rope_frequencies(dynamic, 4, 32, 64), at::tensor({1.0f, 1.0f / 30})));
}

}  // namespace
}  // namespace nanquest::trainer
