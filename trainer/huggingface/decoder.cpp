#include "trainer/huggingface/decoder.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cmath>
#include <cstdio>
#include <set>
#include <utility>

#include "probe/nanquest.h"
#include "trainer/huggingface/checkpointing.h"
#include "trainer/task/causal.h"

namespace nanquest::trainer {
namespace {

/// Rows of a table for tokens of one place, in fp32 whatever the format of the table.
at::Tensor looked_up(const at::Tensor& table, const at::Tensor& indices, const std::string& name,
                     std::int64_t padding_row = -1) {
  const ModuleScope here(name, "Embedding");
  return at::embedding(table, indices, padding_row).to(at::kFloat);
}

/// bool [time, time] or [batch, 1, time, time], true where a query may look; undefined if it may look at all
/// tokens before it.
at::Tensor visible_of(std::int64_t window, std::int64_t time, const at::Tensor& texts,
                      const at::TensorOptions& options) {
  const bool narrow = window > 0 && window < time;
  if (!narrow && !texts.defined()) return {};
  at::Tensor visible = future(time, time, 0, options).logical_not();
  if (narrow) visible = visible.triu(1 - window);
  if (texts.defined()) visible = visible.logical_and(texts.unsqueeze(2).eq(texts.unsqueeze(1)).unsqueeze(1));
  return visible;
}

}  // namespace

Decoder::Decoder(std::string folder, DecoderConfig config, const PretrainedOptions& options,
                 const LoraOptions& lora, std::vector<std::string> targets, WeightMaker& make)
    : folder_(std::move(folder)),
      config_(std::move(config)),
      options_(options),
      lora_(lora),
      targets_(std::move(targets)),
      root_{"", config_.root(), class_prefix(config_) + "Model"} {
  const DecoderConfig& c = config_;
  if (c.images) images_.emplace(make, "model", *c.images, c.width);
  tokens_ =
      make.weight(root_.name + (c.gpt2 ? ".wte.weight" : ".embed_tokens.weight"), {c.vocabulary, c.width});
  if (c.gpt2) positions_ = make.weight(root_.name + ".wpe.weight", {c.context, c.width});
  const std::string parent = root_.name + (c.gpt2 ? ".h" : ".layers");
  for (std::int64_t i = 0; i < c.depth; ++i) {
    const std::size_t before = make.trained.size();
    const Place place{parent, std::to_string(i), class_prefix(c) + (c.gpt2 ? "Block" : "DecoderLayer")};
    DecoderLayer layer(make, place, c, i);
    for (std::size_t j = before; j < make.trained.size(); ++j)
      layer.trained.push_back(make.trained[j].second);
    layers_.push_back(std::move(layer));
  }
  final_norm_ =
      Norm(make, {root_.name, c.gpt2 ? "ln_f" : "norm", c.gpt2 ? "LayerNorm" : class_prefix(c) + "RMSNorm"},
           c.width, c);
  head_ = c.tied_head ? tokens_ : make.weight("lm_head.weight", {c.vocabulary, c.width});
  trained_ = make.trained;
  frozen_ = make.frozen;
  formats_ = make.formats;
  file_names_ = make.file_names;
  packed_ = make.folder().packed();
  adapted_ = !make.adapted.empty();
  frozen_hash_ = make.frozen_hash.finish();
  if (c.gpt2) return;
  rope_ = Rope(c.rope, c.head_width, c.context, options.device);
  local_rope_ = Rope(c.local_rope, c.head_width, c.context, options.device);
}

Pass Decoder::pass_of(const DecoderInput& input, const at::Tensor& positions, bool training) const {
  const at::NoGradGuard no_grad;
  Pass pass;
  pass.form = options_.attention;
  pass.training = training;
  const std::int64_t time = input.tokens.size(1);
  for (const std::int64_t window : config_.windows)
    if (!pass.visible.contains(window))
      pass.visible[window] = visible_of(window, time, input.texts, input.tokens.options());
  if (config_.gpt2) return pass;
  const bool by_length = rope_.by_length() || local_rope_.by_length();
  const std::int64_t length =
      by_length && input.positions.defined() ? input.positions.max().item<std::int64_t>() + 1 : time;
  pass.rotation = rope_.of(positions, length);
  pass.local_rotation = config_.family == "gemma3_text" ? local_rope_.of(positions, length) : pass.rotation;
  return pass;
}

at::Tensor Decoder::embed(const at::Tensor& tokens, const at::Tensor& positions, bool training) const {
  const DecoderConfig& c = config_;
  at::Tensor x = looked_up(tokens_, tokens, c.gpt2 ? "wte" : "embed_tokens", c.padding_row);
  if (c.gemma) x = x * std::sqrt(static_cast<double>(c.width));
  if (!c.gpt2) return x;
  x = x + looked_up(positions_, positions, "wpe");
  return training && c.embedding_dropout > 0 ? at::dropout(x, c.embedding_dropout, true) : x;
}

at::Tensor Decoder::with_images(const at::Tensor& x, const DecoderInput& input, bool training) const {
  const at::Tensor seen =
      (*images_)(input.pixels,
                 {.form = options_.attention, .training = training, .checkpointing = options_.checkpointing});
  const at::Tensor places = input.tokens.eq(config_.images->image_token).unsqueeze(-1);
  return x.masked_scatter(places, seen.to(x.scalar_type()));
}

at::Tensor Decoder::inside(const std::function<at::Tensor()>& run) const {
  const ModuleScope here(images_ ? "language_model" : root_.name, root_.type);
  return run();
}

at::Tensor Decoder::forward(const DecoderInput& input, bool training) {
  const at::Tensor positions = input.positions.defined()
                                   ? input.positions
                                   : at::arange(input.tokens.size(1), input.tokens.options()).unsqueeze(0);
  const Pass pass = pass_of(input, positions, training);
  at::Tensor x;
  {
    std::optional<ModuleScope> outer;
    if (images_) outer.emplace("model", "LlavaModel");
    x = inside([&] { return embed(input.tokens, positions, training); });
    if (images_ && input.pixels.defined()) x = with_images(x, input, training);
    x = inside([&] { return hidden(x, pass); });
  }
  if (input.last > 0 && input.last < x.size(1)) x = x.narrow(1, x.size(1) - input.last, input.last);
  const ModuleScope here("lm_head", "Linear");
  const at::Tensor logits = project(x, head_, {});
  return config_.logit_cap > 0 ? at::tanh(logits / config_.logit_cap) * config_.logit_cap : logits;
}

at::Tensor Decoder::hidden(at::Tensor x, const Pass& pass) const {
  {
    const ModuleScope list(config_.gpt2 ? "h" : "layers", "ModuleList");
    for (const DecoderLayer& layer : layers_)
      x = options_.checkpointing && pass.training
              ? checkpointed([&layer, pass](const at::Tensor& in) { return layer(in, pass); }, x,
                             layer.trained)
              : layer(x, pass);
  }
  return final_norm_(x);
}

std::string Decoder::description() const {
  std::int64_t frozen = 0;
  for (const auto& [name, t] : frozen_) frozen += t.numel();
  return (adapted_ ? "to adapt " : "") + config_.architecture + " with " + std::to_string(config_.depth) +
         " layers of width " + std::to_string(config_.width) +
         (images_ ? ", seeing by " + std::to_string(config_.images->vision.depth) + " of width " +
                        std::to_string(config_.images->vision.width)
                  : "") +
         (frozen > 0 ? " and " + std::to_string(frozen) + " weights that stay as they are" : "");
}

std::string Decoder::fingerprint() const {
  const DecoderConfig& c = config_;
  std::string text = "family=" + c.family;
  const auto add = [&](const char* key, auto value) {
    text += std::string(" ") + key + "=" + std::to_string(value);
  };
  add("vocabulary", c.vocabulary);
  add("width", c.width);
  add("hidden", c.hidden);
  add("depth", c.depth);
  add("heads", c.heads);
  add("key-heads", c.key_heads);
  add("head-width", c.head_width);
  add("context", c.context);
  if (c.experts > 0) {
    add("experts", c.experts);
    add("experts-per-token", c.experts_per_token);
  }
  if (c.images) {
    add("vision-width", c.images->vision.width);
    add("vision-depth", c.images->vision.depth);
    add("image-tokens", c.images->tokens());
  }
  if (adapted_) {
    add("lora-r", lora_.r);
    add("lora-scale", lora_.scale());
    std::string adapted;
    each_projection([&](const Projection& p) {
      if (p.lora) adapted += p.place.path() + "\n";
    });
    add("lora-modules", hash_contents(adapted.data(), adapted.size()));
    add("frozen", frozen_hash_);
  }
  return text;
}

}  // namespace nanquest::trainer
