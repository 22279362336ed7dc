#include <ATen/ATen.h>

#include <filesystem>
#include <map>
#include <set>

#include "probe/nanquest.h"
#include "trainer/huggingface/adapter_files.h"
#include "trainer/huggingface/decoder.h"
#include "trainer/huggingface/saving.h"

namespace nanquest::trainer {
namespace {

const char* format_name(at::ScalarType type) {
  switch (type) {
    case at::kHalf:
      return "float16";
    case at::kBFloat16:
      return "bfloat16";
    default:
      return "float32";
  }
}

Error refused(const std::string& what, const std::string& hint) {
  return {ErrorCode::usage, what, hint};
}

}  // namespace

NamedTensors Decoder::weights_to_save(std::optional<at::ScalarType> format) const {
  std::map<std::string, at::Tensor> merged;
  each_projection([&](const Projection& p) {
    if (p.lora) merged[p.place.path() + ".weight"] = p.merged();
  });
  NamedTensors weights;
  for (const NamedTensors* part : {&trained_, &frozen_})
    for (const auto& [name, t] : *part) {
      if (!formats_.contains(name)) continue;  // a weight of an adapter
      const auto found = merged.find(name);
      const at::Tensor value = found != merged.end() ? found->second : t.detach();
      weights.emplace_back(name, format ? value.to(*format) : value);
    }
  return weights;
}

Status Decoder::save(const std::string& folder, std::optional<at::ScalarType> format) const {
  if (format && *format != at::kFloat && *format != at::kHalf && *format != at::kBFloat16)
    return refused(std::string("weights can't be saved as ") + c10::toString(*format),
                   "fp32, fp16 and bf16 are known");
  std::error_code ec;
  std::filesystem::create_directories(folder, ec);
  if (ec) return Error{ErrorCode::io, folder + ": can't be made: " + ec.message(), "choose another folder"};
  if (std::filesystem::equivalent(folder, folder_, ec))
    return refused(folder + " is where the model came from", "save into another folder");
  NamedTensors weights = weights_to_save(format);
  bool same = true;
  for (const auto& [name, t] : weights) same = same && t.scalar_type() == formats_.at(name);
  weights = packed_again(weights, packed_);
  // Programs that load the folder's names can load these too.
  for (auto& [name, t] : weights)
    if (const auto found = file_names_.find(name); found != file_names_.end()) name = found->second;
  // Without config.json it is not a model folder; so it is removed until everything is written.
  std::filesystem::remove(folder + "/config.json", ec);
  if (Status s = write_weights(folder, weights); !s) return s;
  if (Status s = copy_companions(folder_, folder); !s) return s;
  return write_config(folder_, folder, same ? "" : format_name(format.value_or(at::kFloat)));
}

Status Decoder::save_adapter(const std::string& folder) const {
  if (!adapted_) return refused("there is no adapter to save", "train with --lora, or save the model");
  NamedTensors tensors;
  for (const NamedTensors* part : {&trained_, &frozen_})
    for (const auto& [name, t] : *part)
      if (!formats_.contains(name)) tensors.emplace_back(name, t.detach());
  // PEFT needs names of modules: those that "all-linear" selects, or that an adapter has without listing
  // them.
  std::vector<std::string> targets = targets_;
  if (targets.empty() || targets.front() == "all-linear") {
    std::set<std::string> ends;
    each_projection([&](const Projection& p) {
      if (p.lora) ends.insert(p.place.name);
    });
    targets.assign(ends.begin(), ends.end());
  }
  return write_adapter(folder, lora_, targets, config_.gpt2, folder_, tensors);
}

}  // namespace nanquest::trainer
