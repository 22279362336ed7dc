/// The loss of language models: how unlikely each next token was.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace nanquest::trainer {

/// Sum over all positions of -log softmax(logits)[target] in fp32: logits [B, T, V], targets int64 [B, T];
/// positions with target -100 do not count. Scalar tensor; divide by `count_targets` of the whole window.
at::Tensor next_token_loss(const at::Tensor& logits, const at::Tensor& targets);

/// Number of positions that `next_token_loss` counts.
std::int64_t count_targets(const at::Tensor& targets);

}  // namespace nanquest::trainer
