#include "trainer/huggingface/packed_experts.h"

#include <ATen/ATen.h>
#include <c10/util/strides.h>

#include <map>

#include "trainer/huggingface/folder_weights.h"

namespace nanquest::trainer {
namespace {

at::Tensor joined(const std::vector<at::Tensor>& parts, at::IntArrayRef shape) {
  const at::Tensor& first = parts.front();
  const char* end = first.is_cpu() ? static_cast<const char*>(first.const_data_ptr()) : nullptr;
  std::vector<at::Tensor> flat;
  for (const at::Tensor& part : parts) {
    if (end != nullptr && part.is_alias_of(first) && part.is_contiguous() && part.const_data_ptr() == end) {
      end += part.nbytes();
    } else {
      end = nullptr;
    }
    flat.push_back(part.flatten());
  }
  if (end != nullptr) return first.as_strided(shape, c10::contiguous_strides(shape));
  return at::cat(flat).view(shape);
}

}  // namespace

void split_experts(FolderWeights& weights, const DecoderConfig& c) {
  for (std::int64_t layer = 0; layer < c.depth; ++layer) {
    const std::string experts = c.root() + ".layers." + std::to_string(layer) + ".mlp.experts.";
    const auto of = [&](std::int64_t expert, const char* name) {
      return experts + std::to_string(expert) + "." + name + ".weight";
    };
    if (const std::string both = experts + "gate_up_proj";
        weights.has_shape(both, {c.experts, 2 * c.hidden, c.width})) {
      const at::Tensor whole = weights.peek(both);
      NamedTensors parts;
      for (std::int64_t i = 0; i < c.experts; ++i) {
        parts.emplace_back(of(i, "w1"), whole[i].narrow(0, 0, c.hidden));
        parts.emplace_back(of(i, "w3"), whole[i].narrow(0, c.hidden, c.hidden));
      }
      weights.split(both, parts);
    }
    if (const std::string down = experts + "down_proj";
        weights.has_shape(down, {c.experts, c.width, c.hidden})) {
      const at::Tensor whole = weights.peek(down);
      NamedTensors parts;
      for (std::int64_t i = 0; i < c.experts; ++i) parts.emplace_back(of(i, "w2"), whole[i]);
      weights.split(down, parts);
    }
  }
}

NamedTensors packed_again(const NamedTensors& weights, const std::vector<PackedTensor>& packed) {
  std::map<std::string, at::Tensor> by_name(weights.begin(), weights.end());
  std::map<std::string, const PackedTensor*> first, others;
  for (const PackedTensor& whole : packed)
    for (const std::string& part : whole.parts)
      (part == whole.parts.front() ? first : others).emplace(part, &whole);
  NamedTensors all;
  for (const auto& [name, t] : weights) {
    if (others.contains(name)) continue;
    const auto found = first.find(name);
    if (found == first.end()) {
      all.emplace_back(name, t);
      continue;
    }
    std::vector<at::Tensor> parts;
    for (const std::string& part : found->second->parts) parts.push_back(by_name.at(part));
    all.emplace_back(found->second->name, joined(parts, found->second->shape));
  }
  return all;
}

}  // namespace nanquest::trainer
