/// The vision part of config.json: the vision tower, and the projector from it to tokens.
#pragma once

#include <cstdint>
#include <vector>

namespace nanquest::trainer {

enum class MlpActivation : std::uint8_t;
class ConfigReader;

/// A CLIP vision tower. Fields are those of CLIPVisionConfig.
struct VisionConfig {
  std::int64_t width = 0, hidden = 0, depth = 0, heads = 0;
  std::int64_t channels = 3, image_size = 0, patch_size = 0;
  double norm_eps = 1e-5, attention_dropout = 0;
  MlpActivation activation{};

  std::int64_t patches() const { return (image_size / patch_size) * (image_size / patch_size); }
};

/// The part of a LLaVA outside its decoder and head.
struct ImageConfig {
  VisionConfig vision;
  std::int64_t image_token = 0;        ///< the token at whose places the images are inserted
  std::vector<std::int64_t> features;  ///< selected hidden states of the tower, side by side: 0 … depth
  bool class_feature = false;          ///< whether the class feature comes before those of the patches
  MlpActivation activation{};          ///< of the projector
  bool bias = true;                    ///< of the projector

  /// Number of tokens that an image replaces.
  std::int64_t tokens() const { return vision.patches() + (class_feature ? 1 : 0); }
};

/// From the config.json of a LLaVA. Throws Refused.
ImageConfig read_image_config(const ConfigReader& file);

}  // namespace nanquest::trainer
