#include "trainer/huggingface/rope.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace nanquest::trainer {
namespace {

at::Tensor plain(double theta, std::int64_t width) {
  const at::Tensor exponents = at::arange(0, width, 2, at::kFloat) / static_cast<double>(width);
  return at::pow(theta, exponents).reciprocal();
}

/// Waves longer than low_freq's are divided, those shorter than high_freq's are unchanged, with a ramp
/// between them.
at::Tensor llama3(const RopeConfig& c, const at::Tensor& frequencies) {
  const auto original = static_cast<double>(c.original_context);
  const at::Tensor waves = 2 * std::numbers::pi / frequencies;
  const at::Tensor share =
      ((original / waves - c.low_freq_factor) / (c.high_freq_factor - c.low_freq_factor)).clamp(0, 1);
  return (1 - share) * frequencies / c.factor + share * frequencies;
}

/// The element of a head that turns `turns` times over the model's original context.
double element_of(double turns, const RopeConfig& c, std::int64_t width) {
  return static_cast<double>(width) *
         std::log(static_cast<double>(c.original_context) / (turns * 2 * std::numbers::pi)) /
         (2 * std::log(c.theta));
}

at::Tensor yarn(const RopeConfig& c, const at::Tensor& frequencies, std::int64_t width) {
  double low = element_of(c.beta_fast, c, width), high = element_of(c.beta_slow, c, width);
  if (c.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(width - 1));
  if (low == high) high += 0.001;  // as in transformers, so that the ramp has a slope
  const at::Tensor share = ((at::arange(width / 2, at::kFloat) - low) / (high - low)).clamp(0, 1);
  return frequencies / c.factor * share + frequencies * (1 - share);
}

double yarn_amplitude(const RopeConfig& c) {
  const auto of = [&](double scale) { return c.factor <= 1 ? 1.0 : 0.1 * scale * std::log(c.factor) + 1; };
  if (c.attention_factor > 0) return c.attention_factor;
  return c.mscale > 0 && c.mscale_all_dim > 0 ? of(c.mscale) / of(c.mscale_all_dim) : of(1);
}

}  // namespace

at::Tensor rope_frequencies(const RopeConfig& c, std::int64_t width, std::int64_t context,
                            std::int64_t length) {
  switch (c.type) {
    case RopeType::plain:
      break;
    case RopeType::linear:
      return plain(c.theta, width) / c.factor;
    case RopeType::dynamic: {
      if (length <= context || width <= 2) break;
      const double stretch =
          c.factor * static_cast<double>(length) / static_cast<double>(context) - (c.factor - 1);
      return plain(c.theta * std::pow(stretch, static_cast<double>(width) / static_cast<double>(width - 2)),
                   width);
    }
    case RopeType::llama3:
      return llama3(c, plain(c.theta, width));
    case RopeType::yarn:
      return yarn(c, plain(c.theta, width), width);
  }
  return plain(c.theta, width);
}

Rope::Rope(const RopeConfig& config, std::int64_t head_width, std::int64_t context, at::Device device)
    : config_(config),
      head_width_(head_width),
      context_(context),
      frequencies_(rope_frequencies(config, head_width, context, context).to(device)),
      amplitude_(config.type == RopeType::yarn ? yarn_amplitude(config) : 1) {}

Rotation Rope::of(const at::Tensor& positions, std::int64_t length) const {
  const at::NoGradGuard no_grad;
  const at::Tensor frequencies =
      by_length() && length > context_
          ? rope_frequencies(config_, head_width_, context_, length).to(frequencies_.device())
          : frequencies_;
  const at::Tensor angles = positions.unsqueeze(-1).to(at::kFloat) * frequencies;
  const at::Tensor both = at::cat({angles, angles}, -1).unsqueeze(1);
  return {both.cos() * amplitude_, both.sin() * amplitude_};
}

at::Tensor rotate(const at::Tensor& x, const Rotation& by) {
  const std::vector<at::Tensor> halves = x.chunk(2, -1);
  return x * by.cos + at::cat({-halves[1], halves[0]}, -1) * by.sin;
}

}  // namespace nanquest::trainer
