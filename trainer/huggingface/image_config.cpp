#include "trainer/huggingface/image_config.h"

#include "trainer/huggingface/activation.h"
#include "trainer/huggingface/config_reader.h"

namespace nanquest::trainer {
namespace {

VisionConfig read_vision_config(const ConfigReader& file) {
  if (const std::string type = file.text("model_type", ""); type != "clip_vision_model")
    file.unknown("model_type", type, "clip_vision_model");
  VisionConfig c;
  c.width = file.size("hidden_size", 768);
  c.hidden = file.size("intermediate_size", 3072);
  c.depth = file.size("num_hidden_layers", 12);
  c.heads = file.size("num_attention_heads", 12);
  c.channels = file.size("num_channels", 3);
  c.image_size = file.size("image_size", 224);
  c.patch_size = file.size("patch_size", 32);
  c.norm_eps = file.number("layer_norm_eps", 1e-5);
  c.attention_dropout = file.number("attention_dropout", 0);
  c.activation = file.word<MlpActivation>("hidden_act", "quick_gelu", kActivations);
  if (c.depth > 10000) file.wrong(std::to_string(c.depth) + " layers are more than 10000");
  if (c.width % c.heads != 0) file.wrong("hidden_size is no multiple of num_attention_heads");
  if (c.patch_size > c.image_size) file.wrong("patch_size is more than image_size");
  if (c.image_size > 8192) file.wrong("image_size is more than 8192");
  if (c.attention_dropout >= 1) file.wrong("attention_dropout is not below 1");
  return c;
}

}  // namespace

ImageConfig read_image_config(const ConfigReader& file) {
  ImageConfig c;
  c.vision = read_vision_config(file.inside("vision_config"));
  c.image_token = file.size(file.has("image_token_id") ? "image_token_id" : "image_token_index", 32000);
  c.activation = file.word<MlpActivation>("projector_hidden_act", "gelu", kActivations);
  c.bias = file.flag("multimodal_projector_bias", true);
  const std::string strategy = file.text("vision_feature_select_strategy", "default");
  if (strategy != "default" && strategy != "full")
    file.unknown("vision_feature_select_strategy", strategy, "default, full");
  c.class_feature = strategy == "full";
  // One number or a list of numbers, negative ones from the end: `tokens` reads both.
  c.features = file.tokens("vision_feature_layer");
  if (c.features.empty()) c.features = {-2};
  for (std::int64_t& layer : c.features) {
    const std::int64_t given = layer;
    if (layer < 0) layer += c.vision.depth + 1;
    if (layer < 0 || layer > c.vision.depth)
      file.wrong("vision_feature_layer is " + std::to_string(given) + ", the tower has " +
                 std::to_string(c.vision.depth) + " layers");
  }
  return c;
}

}  // namespace nanquest::trainer
