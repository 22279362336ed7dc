#include "trainer/checkpoint/weights.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <map>
#include <string_view>
#include <vector>

#include "trainer/checkpoint/safetensors.h"

namespace nanquest::trainer {
namespace {

constexpr std::size_t kMostNamed = 6;

/// The weights of a file by their names in a model.
std::map<std::string, at::Tensor> weights_of(const SafetensorsFile& file) {
  const auto kind = file.metadata.find("kind");
  const bool state = kind != file.metadata.end() && kind->second.starts_with("nanquest.train_state.");
  std::map<std::string, at::Tensor> weights;
  for (const auto& [name, t] : file.tensors) {
    if (!state) weights[name] = t;
    for (const std::string_view part : {"model.", "buffer."})
      if (state && name.starts_with(part)) weights[name.substr(part.size())] = t;
  }
  return weights;
}

}  // namespace

std::string shape_text(at::IntArrayRef sizes) {
  std::string text;
  for (const std::int64_t size : sizes) text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "[" + text + "]";
}

Error does_not_fit(const std::string& path, const std::vector<std::string>& wrong) {
  std::string text = path + ": does not fit the model: ";
  for (std::size_t i = 0; i < wrong.size() && i < kMostNamed; ++i) text += (i > 0 ? "; " : "") + wrong[i];
  if (wrong.size() > kMostNamed) text += "; and " + std::to_string(wrong.size() - kMostNamed) + " more";
  return {ErrorCode::bad_file, text, "give weights of a model of this shape"};
}

Status load_weights(const std::string& path, const NamedTensors& targets) {
  const at::NoGradGuard no_grad;
  Result<SafetensorsFile> file = read_safetensors(path);
  if (!file) return file.error();
  std::map<std::string, at::Tensor> weights = weights_of(*file);
  std::vector<std::string> wrong;
  std::vector<std::pair<at::Tensor, at::Tensor>> copies;
  for (const auto& [name, target] : targets) {
    const auto found = weights.find(name);
    if (found == weights.end()) {
      wrong.push_back(name + " is missing");
      continue;
    }
    if (found->second.sizes() != target.sizes())
      wrong.push_back(name + " is " + shape_text(found->second.sizes()) + ", not " + shape_text(target.sizes()));
    else if (found->second.is_floating_point() &&
             !at::isfinite(found->second.to(at::kDouble)).all().item<bool>())
      wrong.push_back(name + " holds NaN or Inf");
    copies.emplace_back(target.detach(), found->second);
    weights.erase(found);
  }
  for (const auto& [name, t] : weights) wrong.push_back(name + " is not in the model");
  if (wrong.empty()) {
    for (auto& [target, value] : copies) target.copy_(value);
    return {};
  }
  return does_not_fit(path, wrong);
}

}  // namespace nanquest::trainer
