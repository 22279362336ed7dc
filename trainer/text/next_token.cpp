#include "trainer/text/next_token.h"

#include <ATen/ATen.h>

#include "probe/nanquest.h"

namespace nanquest::trainer {

at::Tensor next_token_loss(const at::Tensor& logits, const at::Tensor& targets) {
  const ModuleScope here("loss", "CrossEntropy");
  return at::cross_entropy_loss(logits.to(at::kFloat).reshape({-1, logits.size(-1)}), targets.reshape({-1}),
                                {}, at::Reduction::Sum);
}

std::int64_t count_targets(const at::Tensor& targets) {
  return targets.ne(-100).sum().item<std::int64_t>();
}

}  // namespace nanquest::trainer
