/// Rotary position embedding (arXiv 2104.09864) and the ways to stretch it. Inside this room only.
#pragma once

#include <ATen/core/Tensor.h>

#include "trainer/huggingface/decoder_config.h"

namespace nanquest::trainer {

/// Angles of the tokens of a batch: fp32 [batch or 1, 1, time, head_width].
struct Rotation {
  at::Tensor cos, sin;
};

class Rope {
 public:
  Rope() = default;
  Rope(const RopeConfig& config, std::int64_t head_width, std::int64_t context, at::Device device);
  /// `positions`: int64 [batch or 1, time], the largest is `length` - 1 (used only by `dynamic`).
  Rotation of(const at::Tensor& positions, std::int64_t length) const;
  bool by_length() const { return config_.type == RopeType::dynamic; }

 private:
  RopeConfig config_;
  std::int64_t head_width_ = 0, context_ = 0;
  at::Tensor frequencies_;  ///< fp32 [head_width / 2], for texts up to `context_`
  double amplitude_ = 1;    ///< of cosine and sine (yarn)
};

/// The angle by which a position turns each pair of a head's elements: fp32 [head_width / 2], for texts of
/// `length`. `plain`: theta^(-2i/width). `linear` divides all by the factor. `dynamic` uses a larger theta
/// for texts longer than the original context. `llama3` and `yarn` (arXiv 2309.00071) divide only the slow
/// ones, with a ramp.
at::Tensor rope_frequencies(const RopeConfig& config, std::int64_t head_width, std::int64_t context,
                            std::int64_t length);

/// `x` [batch, heads, time, head_width] with each pair (i, i + width/2) turned by its angle.
at::Tensor rotate(const at::Tensor& x, const Rotation& by);

}  // namespace nanquest::trainer
