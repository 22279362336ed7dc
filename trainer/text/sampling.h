/// Text that a model goes on with, token by token: to see what was learned.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "probe/base/result.h"
#include "trainer/config/setting_list.h"

namespace nanquest::trainer {

struct SamplingOptions {
  std::int64_t most = 128;  ///< tokens that are added, at most
  double temperature = 0;   ///< logits are divided by it; 0 = always the likeliest token
  double top_p = 1;         ///< of the likeliest tokens those that together have this probability; 1 = all
  std::uint64_t seed = 42;  ///< of what is drawn
};

/// Declares max-new, temperature, top-p and seed, in the group Sampling.
void declare(SettingList& list, SamplingOptions& options);
/// Names the first option that makes no sense.
Status check(const SamplingOptions& options);

/// A token drawn by `logits` [vocabulary]: the likeliest at temperature 0 (the first of those alike),
/// otherwise by softmax(logits / temperature) over the smallest set of likeliest tokens whose probability
/// reaches `top_p` (Holtzman and others, "The curious case of neural text degeneration", 2020), which has at
/// least one. `bad_file` if a logit is not a number or +infinity.
Result<std::int64_t> draw(const at::Tensor& logits, const SamplingOptions& options, at::Generator generator);

/// Logits of the token after `tokens`, int64 [1, time] on the CPU: [vocabulary].
using NextLogits = std::function<at::Tensor(const at::Tensor& tokens)>;

/// What follows `prompt` (at least one token): up to `options.most` tokens, up to `longest` with the prompt;
/// ends with the first of `ends`, which is part of it.
Result<std::vector<std::int64_t>> go_on(const std::vector<std::int64_t>& prompt, const NextLogits& next,
                                        const std::vector<std::int64_t>& ends, std::int64_t longest,
                                        const SamplingOptions& options);

}  // namespace nanquest::trainer
