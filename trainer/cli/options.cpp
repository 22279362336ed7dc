#include "trainer/cli/settings.h"

namespace nanquest::trainer {
namespace {

void declare_run(CLI::App& app, Settings& s) {
  app.add_option("--data", s.data, "text file, or folder of text files (read recursively)")
      ->type_name("FILE|DIR")
      ->group("Run");
  app.add_option(
         "--run-dir", s.run_dir,
         "where history, incidents and checkpoints go; an earlier run in it is moved to earlier/ inside")
      ->group("Run")
      ->capture_default_str();
  app.add_flag("--resume", s.loop.resume, "go on from the run directory's last checkpoint, bit for bit")
      ->group("Run");
  app.add_option("--steps", s.loop.steps, "optimizer steps in all (0 = from --epochs)")
      ->group("Run")
      ->capture_default_str();
  app.add_option("--epochs", s.epochs, "passes over the data; used when --steps is 0 (both 0 = 3 passes)")
      ->group("Run")
      ->capture_default_str();
  app.add_option("--stop-after", s.loop.stop_after, "end after so many steps, resumably (0 = don't)")
      ->group("Run")
      ->capture_default_str();
  app.add_option("--save-every", s.loop.save_every,
                 "steps between resumable checkpoints (0 = at the end only)")
      ->group("Run")
      ->capture_default_str();
  app.add_option("--eval-every", s.loop.eval_every, "steps between held-out losses (0 = at the end only)")
      ->group("Run")
      ->capture_default_str();
  app.add_option("--eval-windows", s.loop.eval_windows, "held-out windows looked at (0 = never)")
      ->group("Run")
      ->capture_default_str();
  app.add_option("--holdout-every", s.data_eval_every, "each so-manieth window is held out (0 = none)")
      ->group("Run")
      ->capture_default_str();
  app.add_option("--device", s.device, "cpu, cuda or cuda:N")->group("Run")->capture_default_str();
  app.add_option("--threads", s.threads, "CPU threads (0 = LibTorch's choice)")
      ->group("Run")
      ->capture_default_str();
  app.add_option("--seed", s.loop.seed, "of weights, dropout and data order")
      ->group("Run")
      ->capture_default_str();
  app.add_flag("--deterministic", s.deterministic, "refuse kernels that give other bits each time")
      ->group("Run");
  app.add_flag("--json", s.json, "print the summary as JSON")->group("Run");
}

void declare_model(CLI::App& app, Settings& s) {
  app.add_option("--depth", s.model.depth, "blocks")->group("Model")->capture_default_str();
  app.add_option("--width", s.model.width, "width of the residual stream")
      ->group("Model")
      ->capture_default_str();
  app.add_option("--heads", s.model.heads, "attention heads")->group("Model")->capture_default_str();
  app.add_option("--context", s.model.context, "bytes a window predicts")
      ->group("Model")
      ->capture_default_str();
  app.add_option("--hidden", s.model.hidden, "width inside the MLP (0 = 4 x width, 8/3 x for swiglu)")
      ->group("Model")
      ->capture_default_str();
  app.add_option("--norm", s.norm, "layer norm before or after each part: pre, post")
      ->group("Model")
      ->check(CLI::IsMember({"pre", "post"}))
      ->capture_default_str();
  app.add_flag("--qk-norm", s.model.qk_norm, "normalise queries and keys")->group("Model");
  app.add_option("--activation", s.activation, "gelu, relu2 or swiglu")
      ->group("Model")
      ->check(CLI::IsMember({"gelu", "relu2", "swiglu"}))
      ->capture_default_str();
  app.add_option("--init-std", s.model.init_std, "standard deviation of fresh weights")
      ->group("Model")
      ->capture_default_str();
  app.add_option("--dropout", s.model.dropout, "share of activations dropped")
      ->group("Model")
      ->capture_default_str();
  app.add_flag("--tied-head,!--no-tied-head", s.model.tied_head,
               "the output layer reuses the embedding (default)")
      ->group("Model");
}

void declare_optimizer(CLI::App& app, Settings& s) {
  app.add_option("--lr", s.loop.schedule.peak, "peak learning rate")
      ->group("Optimizer")
      ->capture_default_str();
  app.add_option("--warmup-ratio", s.warmup_ratio, "share of the steps in which the rate rises")
      ->group("Optimizer")
      ->capture_default_str();
  app.add_option("--min-lr-ratio", s.loop.schedule.floor_ratio,
                 "where the cosine ends, as a share of the peak")
      ->group("Optimizer")
      ->capture_default_str();
  app.add_option("--weight-decay", s.loop.adamw.weight_decay, "of AdamW")
      ->group("Optimizer")
      ->capture_default_str();
  app.add_option("--beta1", s.loop.adamw.beta1, "of AdamW")->group("Optimizer")->capture_default_str();
  app.add_option("--beta2", s.loop.adamw.beta2, "of AdamW")->group("Optimizer")->capture_default_str();
  app.add_option("--adam-eps", s.loop.adamw.eps, "of AdamW")->group("Optimizer")->capture_default_str();
  app.add_option("--grad-clip", s.loop.grad_clip, "largest gradient norm (0 = no clipping)")
      ->group("Optimizer")
      ->capture_default_str();
  app.add_option("--batch-size", s.loop.batch_size, "windows an optimizer step")
      ->group("Optimizer")
      ->capture_default_str();
  app.add_option("--accumulation", s.loop.micro_batches, "parts the batch is computed in")
      ->group("Optimizer")
      ->capture_default_str();
}

void declare_precision(CLI::App& app, Settings& s) {
  app.add_option("--amp-dtype", s.amp_dtype, "fp32 (no autocast), bf16 or fp16")
      ->group("Precision")
      ->check(CLI::IsMember({"fp32", "bf16", "fp16"}))
      ->capture_default_str();
  app.add_flag("--tf32,!--no-tf32", s.tf32, "multiply fp32 as tf32 on CUDA")->group("Precision");
  app.add_option("--init-scale", s.loop.scaler.initial, "first loss scale (fp16)")
      ->group("Precision")
      ->capture_default_str();
  app.add_option("--scale-floor", s.loop.scaler.floor,
                 "smallest loss scale; an overflow there is an incident")
      ->group("Precision")
      ->capture_default_str();
  app.add_option("--scale-growth-interval", s.loop.scaler.growth_interval,
                 "good steps before the scale doubles")
      ->group("Precision")
      ->capture_default_str();
  app.add_option("--scale-hysteresis", s.loop.scaler.hysteresis, "overflows before the scale halves")
      ->group("Precision")
      ->capture_default_str();
}

void declare_guard(CLI::App& app, Settings& s) {
  app.add_option("--level", s.level, "off or guard: how much the probe does")
      ->group("Guard")
      ->check(
          CLI::IsMember({"off", "guard", "trace", "watch"}).description(""))  // the last two get a sentence
      ->type_name("LEVEL")
      ->capture_default_str();
  app.add_option("--policy", s.policy,
                 "after a non-finite step: retry_fp32, skip, fallback_fp32, rollback, stop")
      ->group("Guard")
      ->check(
          CLI::IsMember({"retry_fp32", "skip", "fallback_fp32", "rollback", "stop"}, CLI::ignore_underscore))
      ->capture_default_str();
  app.add_option("--lr-backoff", s.loop.lr_backoff,
                 "factor on the learning rate that the fp32 fallback leaves behind")
      ->group("Guard")
      ->capture_default_str();
  app.add_option("--skip-limit", s.loop.skip_limit, "batches skipped in a row before rolling back")
      ->group("Guard")
      ->capture_default_str();
  app.add_option("--rollback-limit", s.loop.rollback_limit, "rollbacks before stopping")
      ->group("Guard")
      ->capture_default_str();
  app.add_option("--ring-every", s.loop.ring_every, "steps between states kept in memory for a rollback")
      ->group("Guard")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--ring-depth", s.loop.ring_depth, "how many of them")
      ->group("Guard")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--inject", s.injections,
                 "damage on purpose, to try a policy: nan-loss@BATCH, inf-grad@BATCH, with xCOUNT and :amp "
                 "(only in low precision)")
      ->group("Guard");
}

}  // namespace

void declare_options(CLI::App& app, Settings& settings) {
  app.option_defaults()->ignore_underscore()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  declare_run(app, settings);
  declare_model(app, settings);
  declare_optimizer(app, settings);
  declare_precision(app, settings);
  declare_guard(app, settings);
  app.get_option("--inject")->multi_option_policy(CLI::MultiOptionPolicy::Throw)->expected(1, 64);
}

std::map<std::string, std::string> settings_as_text(const CLI::App& app) {
  std::map<std::string, std::string> text;
  for (const CLI::Option* o : app.get_options()) {
    if (o->get_lnames().empty() || !o->get_configurable()) continue;
    const std::string name = o->get_lnames().front();
    if (name == "help" || name == "version" || name == "config") continue;
    std::string value = o->get_default_str();
    if (o->count() > 0) value = CLI::detail::join(o->results(), " ");
    if (o->get_expected_min() == 0 && o->count() == 0 && value.empty())
      value = name == "tied-head" ? "true" : "false";
    text[name] = value;
  }
  return text;
}

}  // namespace nanquest::trainer
