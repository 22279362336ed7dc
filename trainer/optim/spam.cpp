#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cmath>
#include <map>
#include <numbers>

#include "trainer/optim/clips.h"
#include "trainer/optim/wrapped.h"

namespace nanquest::trainer {
namespace {

constexpr const char* kSecondMoment = "exp_avg_sq.";

class Spam final : public Wrapped {
 public:
  Spam(std::unique_ptr<Optimizer> inner, const SpamOptions& options)
      : Wrapped(std::move(inner)), options_(options), steps_(at::zeros({}, at::kLong)) {}

  void step(double lr) override {
    const at::NoGradGuard no_grad;
    auto* total = steps_.mutable_data_ptr<std::int64_t>();
    const std::int64_t since = options_.interval > 0 ? *total % options_.interval : *total;
    const bool was_reset = options_.interval > 0 && *total >= options_.interval;
    if (was_reset && since == 0)
      for (const auto& [name, t] : Wrapped::state()) t.zero_();
    if (since >= options_.settle) clip();
    ++*total;
    Wrapped::step(was_reset ? lr * rise(since) : lr);
  }

  NamedTensors state() const override {
    NamedTensors all = Wrapped::state();
    all.emplace_back("spam.steps", steps_);
    return all;
  }

 private:
  /// From nearly 0 to 1 in `warmup` steps after a reset.
  double rise(std::int64_t since) const {
    if (since >= options_.warmup) return 1.0;
    const double share = static_cast<double>(since + 1) / static_cast<double>(options_.warmup + 1);
    return 0.5 * (1.0 - std::cos(std::numbers::pi * share));
  }

  void clip() const {
    std::map<std::string, at::Tensor> moments;
    for (const auto& [name, t] : Wrapped::state()) moments[name] = t;
    for (const auto& [name, p] : parameters()) {
      const at::Tensor& gradient = p.grad();
      if (!gradient.defined()) continue;
      const at::Tensor largest = (moments.at(kSecondMoment + name) * options_.threshold).sqrt();
      gradient.copy_(at::where(gradient.abs() > largest, gradient.sign() * largest, gradient));
    }
  }

  SpamOptions options_;
  at::Tensor steps_;
};

}  // namespace

Result<std::unique_ptr<Optimizer>> make_spam(std::unique_ptr<Optimizer> inner, const SpamOptions& options) {
  std::size_t moments = 0;
  for (const auto& [name, t] : inner->state()) moments += name.starts_with(kSecondMoment) ? 1 : 0;
  if (moments != inner->parameters().size())
    return Error{ErrorCode::usage, "spam: this optimizer keeps no second moments to know a spike by",
                 "give --optimizer adamw, or leave --spam out"};
  return std::unique_ptr<Optimizer>(std::make_unique<Spam>(std::move(inner), options));
}

void declare(SettingList& list, ClipSwitches& s, bool shows_heads) {
  list.group("Optimizer");
  list.add("module-clip", s.module_clip, "largest gradient norm of each module (0 = no clipping by module)");
  list.add("zclip", s.zclip, "take gradient norms far above those of late back to there");
  list.add("spam", s.spam, "clip elements that spike, forget Adam's moments every 500 steps");
  if (shows_heads)
    list.add(
        "qk-clip", s.qk_clip,
        "largest attention logit: heads above it have queries and keys scaled down (0 = off, 100 is usual)");
  list.check([&s]() -> Status {
    for (const auto& [value, key] :
         {std::pair{s.module_clip, "module-clip"}, std::pair{s.qk_clip, "qk-clip"}})
      if (!(value >= 0 && std::isfinite(value)))
        return Error{ErrorCode::usage, std::string(key) + " must be a number that is not negative",
                     "0 switches it off"};
    return {};
  });
}

Result<std::unique_ptr<Optimizer>> with_clips(std::unique_ptr<Optimizer> inner, const ClipSwitches& switches,
                                              std::vector<AttentionHeads> layers) {
  if (switches.qk_clip > 0) {
    Result<std::unique_ptr<Optimizer>> held =
        make_qk_clip(std::move(inner), std::move(layers), switches.qk_clip);
    if (!held) return held.error();
    inner = std::move(*held);
  }
  if (switches.zclip) inner = make_zclip(std::move(inner), {});
  if (switches.spam) {
    Result<std::unique_ptr<Optimizer>> held = make_spam(std::move(inner), {});
    if (!held) return held.error();
    inner = std::move(*held);
  }
  if (switches.module_clip > 0) inner = make_module_clip(std::move(inner), switches.module_clip);
  return inner;
}

}  // namespace nanquest::trainer
