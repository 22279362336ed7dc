#include "trainer/task/attention_heads.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <limits>

#include "trainer/task/causal.h"

namespace nanquest::trainer {
namespace {

constexpr std::int64_t kRows = 128;  // queries at a time

}  // namespace

void AttentionHeads::see(const at::Tensor& q, const at::Tensor& k) const {
  const at::DisableRecordFunctionGuard unseen;  // measuring the attention is not part of the step
  const at::NoGradGuard no_grad;
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const std::int64_t time = q.size(2);
  const double scale = 1 / score_divisor(q.size(3));
  const at::Tensor queries_now = q.detach().to(at::kFloat) * scale;
  const at::Tensor keys_now = k.detach().to(at::kFloat).transpose(-2, -1);
  at::Tensor highest = peaks;
  for (std::int64_t begin = 0; begin < time; begin += kRows) {
    const std::int64_t rows = std::min(kRows, time - begin), end = begin + rows;
    const at::Tensor hidden = future(rows, end, begin, q.options());
    const at::Tensor logits = at::matmul(queries_now.narrow(2, begin, rows), keys_now.narrow(3, 0, end))
                                  .masked_fill_(hidden, -std::numeric_limits<double>::infinity());
    highest = at::maximum(highest, logits.amax({0, 2, 3}));
  }
  at::Tensor(peaks).copy_(highest);
}

void forget(const std::vector<AttentionHeads>& layers) {
  const at::DisableRecordFunctionGuard unseen;
  for (const AttentionHeads& layer : layers) at::Tensor(layer.peaks).zero_();
}

}  // namespace nanquest::trainer
