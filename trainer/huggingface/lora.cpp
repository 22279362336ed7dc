#include "trainer/huggingface/lora.h"

#include <cmath>

namespace nanquest::trainer {

double LoraOptions::scale() const {
  const auto rank = static_cast<double>(r);
  return alpha / (rank_scaled ? std::sqrt(rank) : rank);
}

Status check(const LoraOptions& o) {
  const auto wrong = [](std::string what, std::string hint) {
    return Error{ErrorCode::usage, std::move(what), std::move(hint)};
  };
  if (o.r < 1 || o.r > 65536) return wrong("lora-r " + std::to_string(o.r) + " is out of range", "try 8");
  if (!std::isfinite(o.alpha) || o.alpha <= 0) return wrong("lora-alpha must be a positive number", "try 32");
  if (!(o.dropout >= 0 && o.dropout < 1))
    return wrong("lora-dropout must be at least 0 and below 1", "try 0.05");
  return {};
}

}  // namespace nanquest::trainer
