#include "trainer/huggingface/experts.h"

#include <ATen/ATen.h>

#include <string>
#include <string_view>
#include <utility>

#include "probe/nanquest.h"
#include "trainer/huggingface/activation.h"

namespace nanquest::trainer {
namespace {

/// A product in an expert, named after its weight.
at::Tensor product(const at::Tensor& x, const at::Tensor& weight, std::string_view name) {
  const ModuleScope here(name, "Linear");
  return project(x, weight, {});
}

}  // namespace

ExpertMlp::ExpertMlp(WeightMaker& make, Place where, const DecoderConfig& c)
    : place(std::move(where)), config(&c) {
  router = make.weight(place.path() + ".gate.weight", {c.experts, c.width});
  for (std::int64_t i = 0; i < c.experts; ++i) {
    const std::string path = place.path() + ".experts." + std::to_string(i);
    experts.push_back({.gate = make.weight(path + ".w1.weight", {c.hidden, c.width}),
                       .up = make.weight(path + ".w3.weight", {c.hidden, c.width}),
                       .down = make.weight(path + ".w2.weight", {c.width, c.hidden})});
  }
}

at::Tensor ExpertMlp::operator()(const at::Tensor& x) const {
  const ModuleScope here(place.name, place.type);
  const at::Tensor flat = x.reshape({-1, x.size(-1)});
  at::Tensor share, chosen;
  {
    const ModuleScope inner("gate", "MixtralTopKRouter");
    const at::Tensor likely = project(flat, router, {}).to(at::kFloat).softmax(-1);
    std::tie(share, chosen) = likely.topk(config->experts_per_token, -1);
    share = share / share.sum(-1, true);
  }
  const ModuleScope inner("experts", "MixtralExperts");
  at::Tensor sum = at::zeros_like(flat);
  for (std::size_t i = 0; i < experts.size(); ++i) {
    const Expert& expert = experts[i];
    const at::Tensor places = chosen.eq(static_cast<std::int64_t>(i)).nonzero();
    // An expert that trains then has a zero gradient, so that its moments continue as in one tensor of all
    // experts.
    if (places.size(0) == 0 && !expert.gate.requires_grad()) continue;
    const at::Tensor token = places.select(1, 0);
    const at::Tensor in = flat.index_select(0, token);
    // transformers' module ends at "experts"; the weight's name has the expert and the product.
    const ModuleScope number(std::to_string(i), "MixtralExpert");
    const at::Tensor h =
        bent(product(in, expert.gate, "w1"), config->activation) * product(in, expert.up, "w3");
    const at::Tensor weight =
        share.flatten().index_select(0, token * config->experts_per_token + places.select(1, 1)).unsqueeze(1);
    sum = sum.index_add(0, token, (product(h, expert.down, "w2") * weight).to(sum.scalar_type()));
  }
  return sum.view(x.sizes());
}

}  // namespace nanquest::trainer
