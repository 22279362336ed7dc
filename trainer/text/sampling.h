/// Continues a text token by token, to check what was learned.
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
  std::int64_t most = 128;  ///< maximum number of added tokens
  double temperature = 0;   ///< divides the logits; 0 = always the most likely token
  double top_p = 1;         ///< only the most likely tokens with together this probability; 1 = all
  std::uint64_t seed = 42;  ///< for drawing
};

/// Declares max-new, temperature, top-p and seed, in the group Sampling.
void declare(SettingList& list, SamplingOptions& options);
/// Names the first invalid option.
Status check(const SamplingOptions& options);

/// Draws a token by `logits` [vocabulary]: the most likely at temperature 0 (the first of equal ones),
/// otherwise by softmax(logits / temperature) over the smallest set of most likely tokens whose probability
/// reaches `top_p` (Holtzman and others, "The curious case of neural text degeneration", 2020), which has at
/// least one. `bad_file` if a logit is NaN or +infinity.
Result<std::int64_t> draw(const at::Tensor& logits, const SamplingOptions& options, at::Generator generator);

/// Logits of the token after `tokens`, int64 [1, time] on the CPU: [vocabulary].
using NextLogits = std::function<at::Tensor(const at::Tensor& tokens)>;

/// Continues `prompt` (at least one token) with up to `options.most` tokens, up to `longest` including the
/// prompt; ends with the first of `ends`, which is included.
Result<std::vector<std::int64_t>> go_on(const std::vector<std::int64_t>& prompt, const NextLogits& next,
                                        const std::vector<std::int64_t>& ends, std::int64_t longest,
                                        const SamplingOptions& options);

}  // namespace nanquest::trainer
