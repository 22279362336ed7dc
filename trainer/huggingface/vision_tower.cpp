#include "trainer/huggingface/vision_tower.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "probe/nanquest.h"
#include "trainer/huggingface/activation.h"
#include "trainer/huggingface/checkpointing.h"

namespace nanquest::trainer {

VisionLayer::VisionLayer(WeightMaker& make, Place where, const VisionConfig& c)
    : place(std::move(where)),
      attention{place.path(), "self_attn", "CLIPAttention"},
      mlp{place.path(), "mlp", "CLIPMLP"},
      heads(c.heads),
      dropout(c.attention_dropout),
      activation(c.activation) {
  const std::size_t before = make.trained.size();
  const auto linear = [&](const Place& in, const char* name, std::int64_t from, std::int64_t to) {
    return Projection(make, {in.path(), name, "Linear"}, from, to, true, false);
  };
  q = linear(attention, "q_proj", c.width, c.width);
  k = linear(attention, "k_proj", c.width, c.width);
  v = linear(attention, "v_proj", c.width, c.width);
  out = linear(attention, "out_proj", c.width, c.width);
  before_attention = Norm(make, {place.path(), "layer_norm1", "LayerNorm"}, c.width, c.norm_eps);
  fc1 = linear(mlp, "fc1", c.width, c.hidden);
  fc2 = linear(mlp, "fc2", c.hidden, c.width);
  before_mlp = Norm(make, {place.path(), "layer_norm2", "LayerNorm"}, c.width, c.norm_eps);
  for (std::size_t i = before; i < make.trained.size(); ++i) trained.push_back(make.trained[i].second);
}

at::Tensor VisionLayer::attend_to(const at::Tensor& x, const ImagePass& pass) const {
  const ModuleScope here(attention.name, attention.type);
  const auto by_head = [&](const at::Tensor& t) {
    return t.view({t.size(0), t.size(1), heads, -1}).transpose(1, 2);
  };
  const at::Tensor queries = by_head(q(x, pass.training)), keys = by_head(k(x, pass.training)),
                   values = by_head(v(x, pass.training));
  const at::Tensor seen = attend(
      queries, keys, values, {.form = pass.form, .dropout = pass.training ? dropout : 0, .everywhere = true});
  return out(seen.transpose(1, 2).reshape({x.size(0), x.size(1), -1}), pass.training);
}

at::Tensor VisionLayer::operator()(at::Tensor x, const ImagePass& pass) const {
  const ModuleScope here(place.name, place.type);
  x = x + attend_to(before_attention(x), pass);
  const at::Tensor normal = before_mlp(x);
  const ModuleScope inner(mlp.name, mlp.type);
  return x + fc2(bent(fc1(normal, pass.training), activation), pass.training);
}

VisionTower::VisionTower(WeightMaker& make, Place where, const VisionConfig& c)
    : config_(c), place_(std::move(where)) {
  const std::string embeddings = place_.path() + ".embeddings.";
  class_ = make.weight(embeddings + "class_embedding", {c.width});
  patches_ =
      make.weight(embeddings + "patch_embedding.weight", {c.width, c.channels, c.patch_size, c.patch_size});
  positions_ = make.weight(embeddings + "position_embedding.weight", {c.patches() + 1, c.width});
  before_ = Norm(make, {place_.path(), "pre_layrnorm", "LayerNorm"}, c.width, c.norm_eps);
  for (std::int64_t i = 0; i < c.depth; ++i)
    layers_.emplace_back(make,
                         Place{place_.path() + ".encoder.layers", std::to_string(i), "CLIPEncoderLayer"}, c);
  after_ = Norm(make, {place_.path(), "post_layernorm", "LayerNorm"}, c.width, c.norm_eps);
}

at::Tensor VisionTower::embed(const at::Tensor& pixels) const {
  const ModuleScope here("embeddings", "CLIPVisionEmbeddings");
  at::Tensor patches;
  {
    const ModuleScope inner("patch_embedding", "Conv2d");
    patches = at::conv2d(pixels, weight_for(pixels, patches_), {}, config_.patch_size);
  }
  patches = patches.flatten(2).transpose(1, 2).to(at::kFloat);
  const at::Tensor first = class_.to(at::kFloat).expand({pixels.size(0), 1, -1});
  return at::cat({first, patches}, 1) + positions_.to(at::kFloat);
}

at::Tensor VisionTower::features(const at::Tensor& pixels, const std::vector<std::int64_t>& wanted,
                                 const ImagePass& pass) const {
  const ModuleScope here(place_.name, place_.type);
  std::vector<at::Tensor> states{before_(embed(pixels))};
  {
    const ModuleScope encoder("encoder", "CLIPEncoder");
    const ModuleScope list("layers", "ModuleList");
    const auto last = static_cast<std::size_t>(*std::max_element(wanted.begin(), wanted.end()));
    for (std::size_t i = 0; i < last; ++i) {
      const VisionLayer& layer = layers_[i];
      states.push_back(pass.checkpointing && pass.training
                           ? checkpointed([&layer, pass](const at::Tensor& in) { return layer(in, pass); },
                                          states.back(), layer.trained)
                           : layer(states.back(), pass));
    }
  }
  std::vector<at::Tensor> taken;
  taken.reserve(wanted.size());
  for (const std::int64_t state : wanted) taken.push_back(states[static_cast<std::size_t>(state)]);
  return taken.size() == 1 ? taken.front() : at::cat(taken, -1);
}

ImageReader::ImageReader(WeightMaker& make, const std::string& parent, const ImageConfig& c,
                         std::int64_t text_width)
    : config_(c),
      tower_(make, {parent, "vision_tower", "CLIPVisionModel"}, c.vision),
      projector_{parent, "multi_modal_projector", "LlavaMultiModalProjector"} {
  const std::int64_t in = c.vision.width * static_cast<std::int64_t>(c.features.size());
  first_ = Projection(make, {projector_.path(), "linear_1", "Linear"}, in, text_width, c.bias, false);
  second_ =
      Projection(make, {projector_.path(), "linear_2", "Linear"}, text_width, text_width, c.bias, false);
}

at::Tensor ImageReader::operator()(const at::Tensor& pixels, const ImagePass& pass) const {
  at::Tensor seen = tower_.features(pixels, config_.features, pass);
  if (!config_.class_feature) seen = seen.narrow(1, 1, seen.size(1) - 1);
  const ModuleScope here(projector_.name, projector_.type);
  return second_(bent(first_(seen, pass.training), config_.activation), pass.training);
}

}  // namespace nanquest::trainer
