#include "trainer/loop/trainer.h"

#include <ATen/ATen.h>

#include <chrono>
#include <cmath>
#include <filesystem>

#include "trainer/loop/plain_guard.h"
#include "trainer/precision/device.h"

namespace nanquest::trainer {
namespace {

constexpr std::pair<Policy, const char*> kPolicies[] = {{Policy::retry_fp32, "retry_fp32"},
                                                        {Policy::skip, "skip"},
                                                        {Policy::fallback_fp32, "fallback_fp32"},
                                                        {Policy::rollback, "rollback"},
                                                        {Policy::stop, "stop"}};

Status check_loop(const LoopConfig& c) {
  const auto wrong = [](const std::string& what, const std::string& hint) {
    return Error{ErrorCode::usage, what, hint};
  };
  if (c.steps < 1) return wrong("steps must be at least 1", "give --steps");
  if (c.batch_size < 1 || c.micro_batches < 1 || c.batch_size % c.micro_batches != 0)
    return wrong("batch-size " + std::to_string(c.batch_size) + " can't be split into " +
                     std::to_string(c.micro_batches) + " micro-batches",
                 "make the batch size a multiple of --accumulation");
  if (!(c.schedule.peak > 0) || !std::isfinite(c.schedule.peak))
    return wrong("lr must be a positive number", "try 3e-4");
  if (!(c.lr_backoff > 0 && c.lr_backoff <= 1))
    return wrong("lr-backoff must be above 0 and at most 1", "try 0.5");
  if (!(c.grad_clip >= 0)) return wrong("grad-clip must not be negative", "0 switches clipping off");
  if (!(c.scaler.floor > 0 && c.scaler.floor <= c.scaler.ceiling) || !(c.scaler.initial > 0))
    return wrong("loss scales must be positive, with a scale-floor of at most 16777216",
                 "try --scale-floor 1");
  if (c.scaler.growth_interval < 1 || c.scaler.hysteresis < 1)
    return wrong("scale-growth-interval and scale-hysteresis must be at least 1", "try 2000 and 1");
  const auto is_beta = [](double b) { return b >= 0 && b < 1; };
  if (!is_beta(c.adamw.beta1) || !is_beta(c.adamw.beta2))
    return wrong("beta1 and beta2 must be at least 0 and below 1", "try 0.9 and 0.999");
  if (c.ring_every < 1 || c.ring_depth < 1)
    return wrong("ring-every and ring-depth must be at least 1", "try 20 and 3");
  if (c.level == Level::trace || c.level == Level::watch)
    return wrong("this loop can run its steps again, so it knows the levels off and guard only",
                 "use --level guard");
  return {};
}

}  // namespace

std::optional<Policy> policy_from_name(const std::string& name) {
  for (const auto& [policy, text] : kPolicies)
    if (name == text) return policy;
  return std::nullopt;
}

const char* policy_name(Policy wanted) {
  for (const auto& [policy, text] : kPolicies)
    if (policy == wanted) return text;
  return "";
}

Trainer::Trainer(LoopConfig config, std::unique_ptr<Model> model, TextData data, Listener listener)
    : config_(std::move(config)),
      model_(std::move(model)),
      data_(std::move(data)),
      listener_(std::move(listener)),
      optimizer_(model_->parameters(), config_.adamw),
      scaler_(config_.scaler, config_.amp == at::kHalf),
      amp_(config_.amp) {}

Result<std::unique_ptr<Trainer>> Trainer::create(LoopConfig config, std::unique_ptr<Model> model,
                                                 TextData data, Listener listener) {
  if (Status s = check_loop(config); !s) return s.error();
  for (const auto& [name, p] : model->parameters())
    if (p.scalar_type() != at::kFloat)
      return Error{ErrorCode::usage, "weight " + name + " is " + short_name(p.scalar_type()),
                   "keep weights in fp32; --amp-dtype lowers the computation alone"};
  std::unique_ptr<Trainer> t(
      new Trainer(std::move(config), std::move(model), std::move(data), std::move(listener)));
  if (t->config_.resume) {
    Result<TrainState> state = load_state(t->config_.run_dir + "/checkpoints/state.safetensors");
    if (!state) return state.error();
    if (state->fingerprint != t->config_.fingerprint)
      return Error{
          ErrorCode::usage,
          t->config_.run_dir + ": its checkpoint was made with other settings (" + state->fingerprint + ")",
          "resume with the same model, data, seed and batch (now: " + t->config_.fingerprint + ")"};
    if (Status s = t->restore(*state); !s) return s.error();
  }
  if (Status s = t->open_probe(); !s) return s.error();
  std::error_code ec;
  std::filesystem::create_directories(t->config_.run_dir + "/checkpoints", ec);
  if (ec)
    return Error{ErrorCode::io, t->config_.run_dir + ": can't be made: " + ec.message(),
                 "choose another --run-dir"};
  return t;
}

Status Trainer::open_probe() {
  if (config_.level == Level::off) {
    Result<RunClaim> claim = RunClaim::take(config_.run_dir, 0, config_.resume);
    if (!claim) return claim.error();
    claim_.emplace(std::move(claim).value());
    if (!claim_->earlier().empty()) say(claim_->earlier_text());
    return {};
  }
  ProbeOptions options;
  options.run_dir = config_.run_dir;
  options.level = config_.level;
  options.resume = config_.resume;
  options.min_loss_scale = config_.scaler.floor;
  options.config = config_.settings;
  Result<std::unique_ptr<Probe>> probe = Probe::create(std::move(options));
  if (!probe) return probe.error();
  probe_ = std::move(*probe);
  for (const auto& [name, p] : model_->parameters()) probe_->watch_parameter(name, p);
  for (const auto& [name, b] : model_->buffers()) probe_->watch_buffer(name, b);
  probe_->watch_optimizer([this] { return optimizer_.state(); });
  const double nan = std::nan("");
  probe_->log("eval_loss", nan);
  probe_->log("tokens_per_second", nan);
  return {};
}

TrainState Trainer::save() const {
  const at::NoGradGuard no_grad;
  TrainState state;
  state.counters = counters_;
  state.scaler = scaler_.state();
  state.fingerprint = config_.fingerprint;
  for (const auto& [name, p] : model_->parameters())
    state.tensors.emplace_back("model." + name, p.detach().clone());
  for (const auto& [name, b] : model_->buffers())
    state.tensors.emplace_back("buffer." + name, b.detach().clone());
  for (const auto& [name, m] : optimizer_.state()) state.tensors.emplace_back(name, m.clone());
  for (const auto& [name, r] : rng_states(config_.device))
    state.tensors.emplace_back("rng." + name, r.clone());
  return state;
}

Status Trainer::restore(const TrainState& state) {
  const at::NoGradGuard no_grad;
  std::map<std::string, at::Tensor> stored(state.tensors.begin(), state.tensors.end());
  NamedTensors targets;
  for (const auto& [name, p] : model_->parameters()) targets.emplace_back("model." + name, p);
  for (const auto& [name, b] : model_->buffers()) targets.emplace_back("buffer." + name, b);
  for (const auto& [name, m] : optimizer_.state()) targets.emplace_back(name, m);
  for (const auto& [name, target] : targets) {
    const at::Tensor& from = stored[name];
    if (!from.defined() || from.sizes() != target.sizes() || from.scalar_type() != target.scalar_type())
      return Error{ErrorCode::bad_file, "the checkpoint's " + name + " is missing or has another shape",
                   "resume with the settings the run was started with"};
  }
  NamedTensors generators;
  for (auto& [name, now] : rng_states(config_.device)) {
    const at::Tensor& from = stored["rng." + name];
    if (!from.defined() || from.sizes() != now.sizes() || from.scalar_type() != now.scalar_type())
      return Error{ErrorCode::bad_file, "the checkpoint's rng." + name + " is missing or of another kind",
                   "start anew"};
    generators.emplace_back(name, from);
  }
  for (auto& [name, target] : targets) target.copy_(stored[name]);
  set_rng_states(config_.device, generators);
  optimizer_.clear_gradients();
  counters_ = state.counters;
  scaler_.restore(state.scaler);
  amp_ = counters_.fell_back ? at::kFloat : config_.amp;
  return {};
}

Result<Summary> Trainer::run() {
  const auto start = std::chrono::steady_clock::now();
  Status ended;
  try {
    ended = train();
    if (ended) ended = finish();
  } catch (const std::exception& e) {
    std::string text = e.what();
    ended =
        Error{ErrorCode::internal, "LibTorch refused an operation: " + text.substr(0, text.find('\n')), ""};
  }
  if (!ended) {
    if (probe_) (void)probe_->finish("failed: " + ended.error().message);
    return ended.error();
  }
  summary_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return summary_;
}

Status Trainer::train() {
  const std::int64_t end = config_.stop_after > 0
                               ? std::min(config_.steps, counters_.optimizer_step + config_.stop_after)
                               : config_.steps;
  keep_state();
  while (counters_.optimizer_step < end && !stopped_ && !stop_requested_) {
    Result<Next> next = one_batch();
    if (!next) return next.error();
  }
  return {};
}

void Trainer::say(const std::string& text) const {
  if (listener_.on_message) listener_.on_message(text);
}

}  // namespace nanquest::trainer
