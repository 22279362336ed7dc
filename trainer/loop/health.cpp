#include "trainer/loop/health.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <map>
#include <sstream>
#include <utility>

#include "probe/nanquest.h"
#include "trainer/precision/device.h"

namespace nanquest::trainer {
namespace {

constexpr double kApart = 100;          // ratio of the norms of two layers
constexpr double kVanished = 1e-12;     // of the largest norm
constexpr double kFlushed = 0.1;        // share of zeros
constexpr double kSwallowed = 0.5;      // share of updates
constexpr std::int64_t kLooked = 4096;  // elements of each weight

std::string text_of(const char* format, double value) {
  char text[40];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

/// The first part of `name` that is a number; nothing if none is.
std::optional<std::int64_t> layer_of(const std::string& name) {
  std::istringstream parts(name);
  for (std::string part; std::getline(parts, part, '.');)
    if (!part.empty() && part.size() < 10 &&
        std::all_of(part.begin(), part.end(), [](unsigned char c) { return std::isdigit(c) != 0; }))
      return std::stoll(part);
  return std::nullopt;
}

/// Share of zeros in the rows of a matrix that are not all zero: a row of zeros was not used.
double zeros_among_used(const at::Tensor& gradient) {
  const at::Tensor rows = gradient.reshape({gradient.size(0), -1}), zero = rows.eq(0);
  const at::Tensor used = zero.all(1).logical_not();
  const double elements = used.sum().item<double>() * static_cast<double>(rows.size(1));
  return elements == 0 ? 0 : zero.sum(1).mul(used).sum().item<double>() / elements;
}

/// The second factor of an adapter starts at zero, so the first one's gradient is zero too.
bool of_fresh_adapter(const std::string& name) {
  return name.ends_with(".lora_A.weight");
}

/// Every n-th element, so that there are at most kLooked.
at::Tensor some_of(const at::Tensor& t) {
  const at::Tensor flat = t.detach().reshape({-1});
  return flat.slice(0, 0, flat.numel(), std::max<std::int64_t>(1, (flat.numel() + kLooked - 1) / kLooked));
}

/// The module that contains all of `names`: "blocks.3", "" if there is none.
std::string common_module(const std::vector<std::string>& names) {
  std::string common = names.front();
  for (const std::string& name : names) {
    while (!common.empty() && !name.starts_with(common + "."))
      common.erase(common.rfind('.') == std::string::npos ? 0 : common.rfind('.'));
  }
  return common;
}

}  // namespace

std::string without_gradient_remark(const std::vector<std::string>& names) {
  if (names.size() == 1) return "weight " + names.front() + " gets no gradient";
  constexpr std::size_t kNamed = 3;
  const std::string module = common_module(names);
  if (layer_of(module))
    return std::to_string(names.size()) + " weights of " + module + " get no gradient, the first of them " +
           names.front().substr(module.size() + 1);
  std::string text = std::to_string(names.size()) + " weights get no gradient: ";
  for (std::size_t i = 0; i < names.size() && i < kNamed; ++i) text += (i > 0 ? ", " : "") + names[i];
  return names.size() > kNamed ? text + " and " + std::to_string(names.size() - kNamed) + " more" : text;
}

std::optional<std::string> ClipWatch::add(bool clipped) {
  steps_.push_back(clipped);
  if (steps_.size() > kSteps) steps_.pop_front();
  const auto count = static_cast<std::size_t>(std::count(steps_.begin(), steps_.end(), true));
  if (told_ || steps_.size() < kSteps || count < kMost) return std::nullopt;
  told_ = true;
  return std::to_string(count) + " of the last " + std::to_string(kSteps) +
         " steps were clipped: the gradient norm is above --grad-clip as a rule, so the clip sets the rate "
         "(a larger --grad-clip or a smaller --lr says what is meant)";
}

std::vector<std::string> gradient_remarks(const NamedTensors& parameters, at::ScalarType amp) {
  const at::NoGradGuard no_grad;
  std::map<std::int64_t, double> layers;
  std::vector<std::pair<std::string, double>> norms;
  std::vector<std::string> remarks;
  double largest = 0;
  for (const auto& [name, p] : parameters) {
    if (!p.grad().defined()) continue;
    const double squares = p.grad().to(at::kDouble).square().sum().item<double>();
    norms.emplace_back(name, std::sqrt(squares));
    largest = std::max(largest, norms.back().second);
    if (const auto layer = layer_of(name)) layers[*layer] += squares;
    if (amp != at::kHalf || p.dim() < 2) continue;
    if (const double zeros = zeros_among_used(p.grad()); zeros > kFlushed)
      remarks.push_back(
          text_of("%.0f", 100 * zeros) + " % of the gradient of " + name +
          " is exactly zero in fp16: too small for the format (a larger --init-scale, or bf16)");
  }
  const auto by_norm = [](const auto& a, const auto& b) { return a.second < b.second; };
  if (!layers.empty()) {
    const auto [least, most] = std::minmax_element(layers.begin(), layers.end(), by_norm);
    const double apart = std::sqrt(most->second / least->second);
    if (least->second > 0 && apart > kApart)
      remarks.push_back("gradient norms are " + text_of("%.0f", apart) + " times apart over depth: layer " +
                        std::to_string(most->first) + " has " + text_of("%.3g", std::sqrt(most->second)) +
                        ", layer " + std::to_string(least->first) + " " +
                        text_of("%.3g", std::sqrt(least->second)) +
                        " (norms before the blocks, or smaller fresh weights, even that out)");
  }
  for (const auto& [name, norm] : norms)
    if (largest > 0 && norm < kVanished * largest && !(norm == 0 && of_fresh_adapter(name)))
      remarks.push_back("the gradient of " + name + " vanishes: its norm is " + text_of("%.3g", norm) +
                        ", that of the largest " + text_of("%.3g", largest));
  return remarks;
}

UpdateWatch::UpdateWatch(const NamedTensors& parameters) {
  const at::NoGradGuard no_grad;
  for (const auto& [name, p] : parameters)
    before_.push_back(p.grad().defined() ? some_of(p).clone() : at::Tensor());
}

std::optional<std::string> UpdateWatch::look(const NamedTensors& parameters) const {
  const at::NoGradGuard no_grad;
  double moving = 0, stuck = 0;
  std::string format;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const at::Tensor& p = parameters[i].second;
    if (!before_[i].defined() || !p.grad().defined()) continue;
    const at::Tensor meant = some_of(p.grad()).ne(0);
    moving += meant.sum().item<double>();
    stuck += meant.logical_and(some_of(p).eq(before_[i])).sum().item<double>();
    format = short_name(p.scalar_type());
  }
  if (moving == 0 || stuck / moving <= kSwallowed) return std::nullopt;
  return text_of("%.0f", 100 * stuck / moving) +
         " % of the weights with a gradient did not move: the update is less than " + format +
         " can add to them (a larger --lr, or weights in a wider format)";
}

HealthWatch::HealthWatch(const Optimizer& optimizer, std::int64_t full_rate, bool clips,
                         std::function<void(const std::string&)> say)
    : optimizer_(optimizer), full_rate_(full_rate), clips_(clips), say_(std::move(say)) {}

void HealthWatch::before_update(std::int64_t step, at::ScalarType amp) {
  const ObserverPause measuring;
  update_watch_.reset();
  if (step == 0)
    for (const std::string& remark : gradient_remarks(optimizer_.parameters(), amp)) say_(remark);
  if (step == full_rate_) update_watch_.emplace(optimizer_.parameters());
}

void HealthWatch::after_update(std::int64_t step, bool clipped) {
  const ObserverPause measuring;
  const auto tell = [&](const std::optional<std::string>& remark) {
    if (remark) say_(*remark);
  };
  if (update_watch_) tell(update_watch_->look(optimizer_.parameters()));
  update_watch_.reset();
  if (clips_) tell(clip_watch_.add(clipped));
  if (step != 0) return;
  if (const std::vector<std::string> names = optimizer_.without_gradient(); !names.empty())
    say_(without_gradient_remark(names));
}

}  // namespace nanquest::trainer
