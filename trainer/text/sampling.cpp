#include "trainer/text/sampling.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <tuple>

namespace nanquest::trainer {

void declare(SettingList& list, SamplingOptions& o) {
  list.group("Sampling");
  list.add("max-new", o.most, "tokens that are added, at most");
  list.add("temperature", o.temperature, "logits are divided by it (0 = always the likeliest token)");
  list.add("top-p", o.top_p, "draw from the likeliest tokens that together have this probability (1 = all)");
  list.add("seed", o.seed, "of what is drawn");
  list.check([&o] { return check(o); });
}

Status check(const SamplingOptions& o) {
  if (o.most < 1) return Error{ErrorCode::usage, "max-new must be at least 1", "try 128"};
  if (!(o.temperature >= 0))
    return Error{ErrorCode::usage, "temperature must not be negative", "try 0.8, or 0"};
  if (!(o.top_p > 0 && o.top_p <= 1))
    return Error{ErrorCode::usage, "top-p must be above 0 and at most 1", "try 0.95, or 1"};
  return {};
}

Result<std::int64_t> draw(const at::Tensor& logits, const SamplingOptions& options, at::Generator generator) {
  const at::NoGradGuard no_grad;
  const at::Tensor all = logits.detach().to(at::kCPU, at::kDouble);
  // -infinity is a token that is excluded; NaN and +infinity make the choice invalid.
  if (all.isnan().any().item<bool>() || all.isposinf().any().item<bool>() ||
      !all.isfinite().any().item<bool>())
    return Error{ErrorCode::bad_file, "the model's logits are not finite",
                 "its weights are spoiled, or too large"};
  if (options.temperature == 0) return all.argmax().item<std::int64_t>();
  const at::Tensor shares = at::softmax(all / options.temperature, -1);
  auto [sorted, order] = at::sort(shares, /*stable=*/true, /*dim=*/-1, /*descending=*/true);
  // Tokens before which the sum is below top_p: always includes the first.
  const at::Tensor kept = (at::cumsum(sorted, -1) - sorted).lt(options.top_p);
  const at::Tensor chosen = at::multinomial(sorted * kept, 1, /*replacement=*/false, std::move(generator));
  return order[chosen.item<std::int64_t>()].item<std::int64_t>();
}

Result<std::vector<std::int64_t>> go_on(const std::vector<std::int64_t>& prompt, const NextLogits& next,
                                        const std::vector<std::int64_t>& ends, std::int64_t longest,
                                        const SamplingOptions& options) {
  at::Generator generator = at::detail::createCPUGenerator(options.seed);
  std::vector<std::int64_t> all = prompt, added;
  while (static_cast<std::int64_t>(added.size()) < options.most &&
         static_cast<std::int64_t>(all.size()) < longest) {
    const Result<std::int64_t> token =
        draw(next(at::tensor(all, at::kLong).unsqueeze(0)), options, generator);
    if (!token) return token.error();
    all.push_back(*token);
    added.push_back(*token);
    if (std::find(ends.begin(), ends.end(), *token) != ends.end()) break;
  }
  return added;
}

}  // namespace nanquest::trainer
