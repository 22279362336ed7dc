/// Rotary position embedding (arXiv 2104.09864) and the ways of stretching it. Inside this room only.
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
  /// `positions`: int64 [batch or 1, time], the largest of them `length` - 1 (asked for by `dynamic` alone).
  Rotation of(const at::Tensor& positions, std::int64_t length) const;
  bool by_length() const { return config_.type == RopeType::dynamic; }

 private:
  RopeConfig config_;
  std::int64_t head_width_ = 0, context_ = 0;
  at::Tensor frequencies_;  ///< fp32 [head_width / 2], of texts up to `context_`
  double amplitude_ = 1;    ///< of cosine and sine (yarn)
};

/// Angles a position moves each pair of a head's elements by: fp32 [head_width / 2], for texts of `length`.
/// `plain`: theta^(-2i/width). `linear` divides all by the factor. `dynamic` takes a larger theta from the
/// length on that the model was made for. `llama3` and `yarn` (arXiv 2309.00071) divide the slow ones alone,
/// with a ramp.
at::Tensor rope_frequencies(const RopeConfig& config, std::int64_t head_width, std::int64_t context,
                            std::int64_t length);

/// `x` [batch, heads, time, head_width] with each pair (i, i + width/2) turned by its angle.
at::Tensor rotate(const at::Tensor& x, const Rotation& by);

}  // namespace nanquest::trainer
