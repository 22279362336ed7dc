#include "trainer/cli/settings.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "trainer/loop/trainer.h"
#include "trainer/precision/device.h"

namespace nanquest::trainer {
namespace {

Level level_of(const std::string& name) {
  if (name == "off") return Level::off;
  if (name == "trace") return Level::trace;
  return name == "watch" ? Level::watch : Level::guard;
}

/// Takes a whole number from the front of `text`; false if there is none.
bool take_number(std::string_view& text, std::int64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || value < 0) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

std::string fingerprint_of(const Settings& s, const TextData& data) {
  char text[400];
  std::snprintf(text, sizeof text,
                "gpt depth=%lld width=%lld heads=%lld context=%lld hidden=%lld norm=%s qk=%d act=%s "
                "dropout=%g tied=%d; "
                "seed=%llu batch=%lldx%lld holdout=%lld amp=%s; data=%016llx",
                static_cast<long long>(s.model.depth), static_cast<long long>(s.model.width),
                static_cast<long long>(s.model.heads), static_cast<long long>(s.model.context),
                static_cast<long long>(s.model.hidden_width()), s.norm.c_str(), s.model.qk_norm,
                s.activation.c_str(), s.model.dropout, s.model.tied_head,
                static_cast<unsigned long long>(s.loop.seed), static_cast<long long>(s.loop.batch_size),
                static_cast<long long>(s.loop.micro_batches), static_cast<long long>(s.data_eval_every),
                s.amp_dtype.c_str(), static_cast<unsigned long long>(data.fingerprint()));
  return text;
}

}  // namespace

Result<Injection> parse_injection(const std::string& text) {
  const Error wrong{ErrorCode::usage, "--inject " + text + " is not understood",
                    "nan-loss@40, inf-grad@40x5 or nan-loss@40:amp"};
  Injection injection;
  std::string_view rest = text;
  const std::size_t at = rest.find('@');
  if (at == std::string_view::npos) return wrong;
  const std::string_view kind = rest.substr(0, at);
  if (kind == "inf-grad") {
    injection.kind = Injection::Kind::inf_gradient;
  } else if (kind != "nan-loss") {
    return wrong;
  }
  rest.remove_prefix(at + 1);
  if (!take_number(rest, injection.at)) return wrong;
  if (rest.starts_with('x')) {
    rest.remove_prefix(1);
    if (!take_number(rest, injection.count)) return wrong;
  }
  if (rest == ":amp") {
    injection.only_low_precision = true;
  } else if (!rest.empty()) {
    return wrong;
  }
  return injection;
}

DataOptions data_options(const Settings& s) {
  return {.context = s.model.context, .seed = s.loop.seed, .eval_every = s.data_eval_every};
}

Status complete(Settings& s, const TextData& data) {
  LoopConfig& loop = s.loop;
  s.model.norm = s.norm == "post" ? NormPlace::post : NormPlace::pre;
  s.model.activation = s.activation == "relu2"    ? Activation::relu2
                       : s.activation == "swiglu" ? Activation::swiglu
                                                  : Activation::gelu;
  if (Status ok = check(s.model); !ok) return ok;
  const Result<at::Device> device = find_device(s.device);
  if (!device) return device.error();
  const Result<at::ScalarType> amp = find_amp_dtype(s.amp_dtype, *device);
  if (!amp) return amp.error();
  if (Status ok = check_tf32(s.tf32, *device, cuda_major(*device)); !ok) return ok;
  loop.device = *device;
  loop.amp = *amp;
  loop.policy = *policy_from_name(s.policy);
  loop.level = level_of(s.level);
  loop.run_dir = s.run_dir;
  if (!(s.warmup_ratio >= 0 && s.warmup_ratio <= 1))
    return Error{ErrorCode::usage, "warmup-ratio must be between 0 and 1", "try 0.03"};
  if (loop.batch_size < 1) return Error{ErrorCode::usage, "batch-size must be at least 1", "try 8"};
  if (loop.steps <= 0) {
    const std::int64_t passes = s.epochs > 0 ? s.epochs : 3;
    loop.steps = passes * ((data.train_windows() + loop.batch_size - 1) / loop.batch_size);
  }
  loop.schedule.total_steps = loop.steps;
  // At least one step, so that the very first update is not at the full rate.
  loop.schedule.warmup_steps =
      s.warmup_ratio > 0
          ? std::max<std::int64_t>(1, std::llround(s.warmup_ratio * static_cast<double>(loop.steps)))
          : 0;
  for (const std::string& text : s.injections) {
    Result<Injection> injection = parse_injection(text);
    if (!injection) return injection.error();
    loop.injections.push_back(*injection);
  }
  loop.fingerprint = fingerprint_of(s, data);
  return {};
}

}  // namespace nanquest::trainer
