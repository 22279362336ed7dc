/// The loss of language models: negative log-likelihood of the next token.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "trainer/task/task.h"

namespace nanquest::trainer {

/// Sum over all positions of -log softmax(logits)[target] in fp32: logits [B, T, V], targets int64 [B, T];
/// positions with target -100 do not count. Scalar tensor; divide by `count_targets` of the whole window.
/// With `z_loss`, that factor times (log of the sum of exp(logits))² is added for each position that counts:
/// it keeps the logits near the range in which softmax is exact, also in a narrow format.
at::Tensor next_token_loss(const at::Tensor& logits, const at::Tensor& targets, double z_loss = 0);

/// Samples for which `next_token_loss` can't be computed or that do not contribute to it: a token outside
/// `vocabulary`, a target that is neither a token nor -100, no target that counts, more than `longest`
/// positions. `tokens` and `targets` int64 [B, T] on the CPU.
std::vector<Fault> token_faults(const at::Tensor& tokens, const at::Tensor& targets, std::int64_t vocabulary,
                                std::int64_t longest);

/// Number of positions that `next_token_loss` counts.
std::int64_t count_targets(const at::Tensor& targets);

}  // namespace nanquest::trainer
