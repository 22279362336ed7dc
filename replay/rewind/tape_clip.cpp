#include "replay/rewind/tape_clip.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <memory>
#include <sstream>
#include <vector>

#include "probe/numerics/clip.h"
#include "replay/rewind/gradients.h"

namespace nanquest {

Status TapeClip::watch(const StepSpan& span, const TapeStep& step, TapeHooks& hooks) {
  const bool again = step.clip > 0 && otherwise_;
  if (limit_ <= 0 && !again) return {};
  const Result<std::vector<TapeGradient>> gradients = gradients_of(graph_, span, step);
  if (!gradients) return gradients.error();
  if (gradients->empty()) return {};
  const auto held = std::make_shared<std::vector<at::Tensor>>();
  for (const TapeGradient& gradient : *gradients)
    hooks.after(gradient.op,
                [held, entry = static_cast<std::size_t>(gradient.entry)](TapeHooks::Written& written) {
                  if (entry < written.size() && written[entry].defined()) held->push_back(written[entry]);
                });
  hooks.after(step.gate - 1, [this, held, step, again](TapeHooks::Written&) {
    if (held->empty()) return;
    std::vector<at::Tensor> norms;
    norms.reserve(held->size());
    for (const at::Tensor& gradient : *held)
      norms.push_back(at::linalg_vector_norm(gradient, 2, c10::nullopt, false, at::kDouble));
    double norm = at::linalg_vector_norm(at::stack(norms), 2).item<double>(), factor = 1;
    longest_ = std::max(longest_, norm);
    if (limit_ > 0 && clip_coefficient(limit_, norm) < 1) {
      factor = clip_coefficient(limit_, norm);
      norm *= factor;
      ++clipped_;
    }
    if (again) factor *= clip_coefficient(step.clip, norm) / clip_coefficient(step.clip, step.grad_norm);
    // Norms of the same gradients differ in their last bits by the order of the sum.
    if (std::abs(factor - 1) > 1e-12)
      for (at::Tensor& gradient : *held) gradient.mul_(factor);
    held->clear();
  });
  return {};
}

std::string TapeClip::nothing_to_clip() const {
  if (limit_ <= 0 || clipped_ > 0) return "";
  std::ostringstream why;
  why << "no update has gradients of such a norm: the largest is " << std::setprecision(4) << longest_;
  return why.str();
}

}  // namespace nanquest
