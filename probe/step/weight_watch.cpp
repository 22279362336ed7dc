#include "probe/step/weight_watch.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "probe/tensor/tensor_scan.h"

namespace nanquest {
namespace {

constexpr std::size_t kLanes = 8;
constexpr std::int64_t kSample = 2048, kBlocks = 8, kBlock = kSample / kBlocks;

template <class T>
void fetch_blocks(const at::Tensor& parameter, std::size_t count, double* to) {
  const T* data = static_cast<const T*>(parameter.const_data_ptr());
  const std::int64_t n = parameter.numel();
  const bool whole = static_cast<std::size_t>(n) == count;
  const std::int64_t blocks = whole ? 1 : kBlocks, length = whole ? n : kBlock;
  for (std::int64_t b = 0; b < blocks; ++b) {
    const T* from = data + (whole ? 0 : b * (n - kBlock) / (kBlocks - 1));
    for (std::int64_t i = 0; i < length; ++i) *to++ = static_cast<double>(from[i]);
  }
}

/// False for what the loop above can't read.
bool fetch_fast(const at::Tensor& p, std::size_t count, double* to) {
  if (!p.is_cpu() || !p.is_non_overlapping_and_dense() || p.is_neg()) return false;
  switch (p.scalar_type()) {
    case at::kFloat:
      fetch_blocks<float>(p, count, to);
      return true;
    case at::kDouble:
      fetch_blocks<double>(p, count, to);
      return true;
    case at::kHalf:
      fetch_blocks<at::Half>(p, count, to);
      return true;
    case at::kBFloat16:
      fetch_blocks<at::BFloat16>(p, count, to);
      return true;
    default:
      return false;
  }
}

}  // namespace

void WeightWatch::watch(const at::Tensor& parameter) {
  for (const at::Tensor& known : parameters_)
    if (known.is_same(parameter)) return;
  parameters_.push_back(parameter);
  const bool real = parameter.is_floating_point() && parameter.layout() == at::kStrided;
  const std::size_t count = real ? static_cast<std::size_t>(std::min(parameter.numel(), kSample)) : 0;
  samples_.push_back({before_.size(), count, 0, 0});
  before_.resize(before_.size() + count);
  after_.resize(before_.size());
  elements_ += parameter.numel();
}

void WeightWatch::bind(std::size_t index, const at::Tensor& parameter) {
  if (index >= parameters_.size()) return;
  const bool fits = parameter.defined() && parameter.is_floating_point() &&
                    parameter.layout() == at::kStrided &&
                    static_cast<std::size_t>(std::min(parameter.numel(), kSample)) == samples_[index].count;
  parameters_[index] = fits ? parameter : at::Tensor{};
}

bool WeightWatch::due(std::int64_t step) const {
  if (every_ <= 0 || parameters_.empty()) return false;
  if (step % every_ == 0) return true;
  // Asked each time: a program may try its model on the CPU before it moves it.
  return worth_every_step(elements_, /*on_cpu=*/true) &&
         std::all_of(parameters_.begin(), parameters_.end(),
                     [](const at::Tensor& p) { return !p.defined() || p.is_cpu(); });
}

at::Tensor WeightWatch::sample(std::size_t index) const {
  const at::Tensor& p = parameters_[index];
  const auto count = static_cast<std::int64_t>(samples_[index].count);
  const std::int64_t stride = std::max<std::int64_t>(1, p.numel() / count);
  const at::Tensor picked = p.detach().reshape({-1}).slice(0, 0, p.numel(), stride);
  return picked.slice(0, 0, count).to(widest_float(p.device()));
}

// The results of one device are copied to the host at once.
void WeightWatch::fetch(std::vector<double>& to) const {
  const at::NoGradGuard no_grad;
  std::map<c10::DeviceType, std::vector<std::size_t>> others;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const at::Tensor& p = parameters_[i];
    if (samples_[i].count == 0 || !p.defined()) continue;
    if (!fetch_fast(p, samples_[i].count, to.data() + samples_[i].offset))
      others[p.device().type()].push_back(i);
  }
  for (const auto& [device, indices] : others) {
    std::vector<at::Tensor> samples;
    for (const std::size_t i : indices) samples.push_back(sample(i).to(parameters_[indices[0]].device()));
    const at::Tensor host = at::cat(samples).to(at::kCPU).to(at::kDouble);
    const double* from = host.const_data_ptr<double>();
    for (const std::size_t i : indices) {
      std::copy_n(from, samples_[i].count, to.data() + samples_[i].offset);
      from += samples_[i].count;
    }
  }
}

void WeightWatch::before_update() {
  fetch(before_);
}

void WeightWatch::after_update() {
  pass_.begin();
  for (const at::Tensor& p : parameters_) pass_.add(p);
  pass_.run(1);
  fetch(after_);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    Sample& sample = samples_[i];
    const double* was = before_.data() + sample.offset;
    const double* is = after_.data() + sample.offset;
    // Several sums at a time: one sum after the other would wait for itself.
    std::array<double, kLanes> moved{}, before{};
    for (std::size_t k = 0; k < sample.count; k += kLanes)
      for (std::size_t lane = 0; lane < std::min(kLanes, sample.count - k); ++lane) {
        const double step = is[k + lane] - was[k + lane];
        moved[lane] += step * step;
        before[lane] += was[k + lane] * was[k + lane];
      }
    const double all =
        sample.count ? static_cast<double>(parameters_[i].numel()) / static_cast<double>(sample.count) : 0;
    sample.moved = std::accumulate(moved.begin(), moved.end(), 0.0) * all;
    sample.before = std::accumulate(before.begin(), before.end(), 0.0) * all;
  }
}

std::uint64_t WeightWatch::non_finite() const {
  std::uint64_t bad = 0;
  for (std::size_t i = 0; i < pass_.size(); ++i) bad += pass_.stats(i).non_finite;
  return bad;
}

}  // namespace nanquest
