#include "trainer/huggingface/layers.h"

#include <ATen/ATen.h>

#include <utility>

#include "probe/nanquest.h"
#include "trainer/huggingface/activation.h"
#include "trainer/huggingface/experts.h"
#include "trainer/task/causal.h"

namespace nanquest::trainer {
namespace {

at::Tensor dropped(const at::Tensor& x, double share, bool training) {
  return training && share > 0 ? at::dropout(x, share, true) : x;
}

const char* linear_class(const DecoderConfig& c) {
  return c.gpt2 ? "Conv1D" : "Linear";
}

}  // namespace

at::Tensor bent(const at::Tensor& x, MlpActivation activation) {
  switch (activation) {
    case MlpActivation::silu:
      return at::silu(x);
    case MlpActivation::gelu:
      return at::gelu(x);
    case MlpActivation::gelu_tanh:
      return at::gelu(x, "tanh");
    case MlpActivation::quick_gelu:
      return x * at::sigmoid(1.702 * x);
    case MlpActivation::relu:
      break;
  }
  return at::relu(x);
}

std::string class_prefix(const DecoderConfig& c) {
  for (const char* end : {"ForCausalLM", "LMHeadModel"})
    if (c.architecture.ends_with(end)) return c.architecture.substr(0, c.architecture.rfind(end));
  return c.architecture;
}

Norm::Norm(WeightMaker& make, Place where, std::int64_t width, const DecoderConfig& c)
    : place(std::move(where)), eps(c.norm_eps), plus_one(c.gemma) {
  weight = make.weight(place.path() + ".weight", {width});
  if (c.gpt2) bias = make.weight(place.path() + ".bias", {width});
}

Norm::Norm(WeightMaker& make, Place where, std::int64_t width, double epsilon)
    : place(std::move(where)), eps(epsilon) {
  weight = make.weight(place.path() + ".weight", {width});
  bias = make.weight(place.path() + ".bias", {width});
}

at::Tensor Norm::operator()(const at::Tensor& x) const {
  const ModuleScope here(place.name, place.type);
  if (bias.defined())
    return at::layer_norm(x.to(at::kFloat), weight.sizes(), weight.to(at::kFloat), bias.to(at::kFloat), eps);
  const at::Tensor wide = x.to(at::kFloat);
  const at::Tensor normal = wide * at::rsqrt(wide.pow(2).mean(at::IntArrayRef{-1}, true) + eps);
  return plus_one ? normal * (1.0 + weight.to(at::kFloat)) : weight * normal;
}

SelfAttention::SelfAttention(WeightMaker& make, Place where, const DecoderConfig& c, std::int64_t layer)
    : place(std::move(where)), config(&c), window(c.windows[static_cast<std::size_t>(layer)]) {
  const std::string path = place.path(), type = linear_class(c);
  const std::int64_t wide = c.heads * c.head_width, narrow = c.key_heads * c.head_width;
  if (c.gpt2) {
    qkv = Projection(make, {path, "c_attn", type}, c.width, 3 * c.width, true, true);
    out = Projection(make, {path, "c_proj", type}, c.width, c.width, true, true);
  } else {
    q = Projection(make, {path, "q_proj", type}, c.width, wide, c.qkv_bias, false);
    k = Projection(make, {path, "k_proj", type}, c.width, narrow, c.qkv_bias, false);
    v = Projection(make, {path, "v_proj", type}, c.width, narrow, c.qkv_bias, false);
    out = Projection(make, {path, "o_proj", type}, wide, c.width, c.out_bias, false);
  }
  if (c.qk_norm) {
    q_norm = Norm(make, {path, "q_norm", class_prefix(c) + "RMSNorm"}, c.head_width, c);
    k_norm = Norm(make, {path, "k_norm", class_prefix(c) + "RMSNorm"}, c.head_width, c);
  }
  divisor = c.score_divisor;
  if (c.score_divisor_by_layer)
    divisor = (divisor > 0 ? divisor : score_divisor(c.head_width)) * static_cast<double>(layer + 1);
}

at::Tensor SelfAttention::operator()(const at::Tensor& x, const Pass& pass) const {
  const ModuleScope here(place.name, place.type);
  const DecoderConfig& c = *config;
  const auto by_head = [&](const at::Tensor& t) {
    return t.view({t.size(0), t.size(1), -1, c.head_width}).transpose(1, 2);
  };
  at::Tensor queries, keys, values;
  if (c.gpt2) {
    const std::vector<at::Tensor> parts = qkv(x, pass.training).split(c.width, 2);
    queries = by_head(parts[0]);
    keys = by_head(parts[1]);
    values = by_head(parts[2]);
  } else {
    queries = by_head(q(x, pass.training));
    keys = by_head(k(x, pass.training));
    values = by_head(v(x, pass.training));
    if (c.qk_norm) {
      queries = q_norm(queries);
      keys = k_norm(keys);
    }
    const Rotation& rotation = window > 0 ? pass.local_rotation : pass.rotation;
    queries = rotate(queries, rotation);
    keys = rotate(keys, rotation);
  }
  const at::Tensor seen = attend(queries, keys, values,
                                 {.form = pass.form,
                                  .divisor = divisor,
                                  .cap = c.score_cap,
                                  .dropout = pass.training ? c.attention_dropout : 0,
                                  .visible = pass.visible.at(window)});
  const at::Tensor y = out(seen.transpose(1, 2).reshape({x.size(0), x.size(1), -1}), pass.training);
  return dropped(y, c.residual_dropout, pass.training);
}

GatedMlp::GatedMlp(WeightMaker& make, Place where, const DecoderConfig& c)
    : place(std::move(where)), config(&c) {
  const std::string path = place.path(), type = linear_class(c);
  if (c.gpt2) {
    up = Projection(make, {path, "c_fc", type}, c.width, c.hidden, true, true);
    down = Projection(make, {path, "c_proj", type}, c.hidden, c.width, true, true);
    return;
  }
  gate = Projection(make, {path, "gate_proj", type}, c.width, c.hidden, c.mlp_bias, false);
  up = Projection(make, {path, "up_proj", type}, c.width, c.hidden, c.mlp_bias, false);
  down = Projection(make, {path, "down_proj", type}, c.hidden, c.width, c.mlp_bias, false);
}

at::Tensor GatedMlp::operator()(const at::Tensor& x, const Pass& pass) const {
  const ModuleScope here(place.name, place.type);
  const MlpActivation activation = config->activation;
  const at::Tensor h = config->gpt2 ? bent(up(x, pass.training), activation)
                                    : bent(gate(x, pass.training), activation) * up(x, pass.training);
  return dropped(down(h, pass.training), config->residual_dropout, pass.training);
}

DecoderLayer::DecoderLayer(WeightMaker& make, Place where, const DecoderConfig& c, std::int64_t layer)
    : place(std::move(where)),
      attention(make, {place.path(), c.gpt2 ? "attn" : "self_attn", class_prefix(c) + "Attention"}, c, layer),
      four_norms(c.four_norms) {
  if (c.experts > 0)
    experts = std::make_shared<const ExpertMlp>(
        make, Place{place.path(), "mlp", class_prefix(c) + "SparseMoeBlock"}, c);
  else
    mlp = GatedMlp(make, {place.path(), "mlp", class_prefix(c) + "MLP"}, c);
  const auto norm = [&](const char* name) {
    return Norm(make, {place.path(), name, c.gpt2 ? "LayerNorm" : class_prefix(c) + "RMSNorm"}, c.width, c);
  };
  before_attention = norm(c.gpt2 ? "ln_1" : "input_layernorm");
  if (!c.four_norms) {
    before_mlp = norm(c.gpt2 ? "ln_2" : "post_attention_layernorm");
    return;
  }
  after_attention = norm("post_attention_layernorm");
  before_mlp = norm("pre_feedforward_layernorm");
  after_mlp = norm("post_feedforward_layernorm");
}

at::Tensor DecoderLayer::operator()(at::Tensor x, const Pass& pass) const {
  const ModuleScope here(place.name, place.type);
  at::Tensor y = attention(before_attention(x), pass);
  if (four_norms) y = after_attention(y);
  x = x + y;
  y = before_mlp(x);
  y = experts ? (*experts)(y) : mlp(y, pass);
  if (four_norms) y = after_mlp(y);
  return x + y;
}

}  // namespace nanquest::trainer
