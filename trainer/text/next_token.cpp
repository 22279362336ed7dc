#include "trainer/text/next_token.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <span>
#include <string>

#include "probe/nanquest.h"
#include "trainer/data/token_data.h"

namespace nanquest::trainer {
namespace {

using Row = std::span<const std::int64_t>;

/// One row of a contiguous int64 [B, T].
Row row_of(const at::Tensor& t, std::int64_t row) {
  const std::int64_t size = t.size(1);
  return {t.const_data_ptr<std::int64_t>() + row * size, static_cast<std::size_t>(size)};
}

/// "targets holds 300 at 5, not one of 256" for the first invalid number, "" if all are valid.
std::string first_strange(const char* name, Row row, std::int64_t vocabulary, bool may_be_left_out) {
  for (std::size_t i = 0; i < row.size(); ++i)
    if ((row[i] < 0 || row[i] >= vocabulary) && !(may_be_left_out && row[i] == kLeftOut))
      return std::string(name) + " holds " + std::to_string(row[i]) + " at " + std::to_string(i) +
             ", not one of " + std::to_string(vocabulary);
  return "";
}

}  // namespace

std::vector<Fault> token_faults(const at::Tensor& tokens, const at::Tensor& targets, std::int64_t vocabulary,
                                std::int64_t longest) {
  const at::Tensor all_tokens = tokens.contiguous(), all_targets = targets.contiguous();
  std::vector<Fault> faults;
  for (std::int64_t i = 0; i < tokens.size(0); ++i) {
    const Row row = row_of(all_targets, i);
    std::string what;
    if (tokens.size(1) > longest)
      what = std::to_string(tokens.size(1)) + " tokens, more than the model's " + std::to_string(longest);
    if (what.empty()) what = first_strange("tokens", row_of(all_tokens, i), vocabulary, false);
    if (what.empty()) what = first_strange("targets", row, vocabulary, true);
    if (what.empty() && std::all_of(row.begin(), row.end(), [](std::int64_t t) { return t == kLeftOut; }))
      what = "no target is left in it";
    if (!what.empty()) faults.push_back({i, what});
  }
  return faults;
}

at::Tensor next_token_loss(const at::Tensor& logits, const at::Tensor& targets, double z_loss) {
  const ModuleScope here("loss", "CrossEntropy");
  const at::Tensor rows = logits.to(at::kFloat).reshape({-1, logits.size(-1)}),
                   wanted = targets.reshape({-1});
  const at::Tensor loss = at::cross_entropy_loss(rows, wanted, {}, at::Reduction::Sum);
  if (z_loss == 0) return loss;
  return loss + at::logsumexp(rows, -1).square().mul(wanted.ne(kLeftOut)).sum() * z_loss;
}

std::int64_t count_targets(const at::Tensor& targets) {
  return targets.ne(kLeftOut).sum().item<std::int64_t>();
}

}  // namespace nanquest::trainer
