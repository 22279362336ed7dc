/// What config.json says of how a model sees: its vision tower, and what leads from that to its tokens.
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

/// The part of a LLaVA that is neither its decoder nor its head.
struct ImageConfig {
  VisionConfig vision;
  std::int64_t image_token = 0;        ///< the token in whose places the images stand
  std::vector<std::int64_t> features;  ///< hidden states of the tower that are taken, side by side: 0 … depth
  bool class_feature = false;          ///< whether that of the class stands before those of the patches
  MlpActivation activation{};          ///< of the projector
  bool bias = true;                    ///< of the projector

  /// Tokens that an image takes the places of.
  std::int64_t tokens() const { return vision.patches() + (class_feature ? 1 : 0); }
};

/// Of the config.json of a LLaVA. Throws Refused.
ImageConfig read_image_config(const ConfigReader& file);

}  // namespace nanquest::trainer
