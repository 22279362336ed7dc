#include "trainer/huggingface/weight_maker.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "probe/nanquest.h"
#include "trainer/checkpoint/weights.h"

namespace nanquest::trainer {

WeightMaker::WeightMaker(FolderWeights from, std::optional<AdapterFolder> adapter, const LoraOptions& lora,
                         std::vector<std::string> targets, const PretrainedOptions& options)
    : from_(std::move(from)),
      adapter_(std::move(adapter)),
      lora_(lora),
      targets_(std::move(targets)),
      device_(options.device),
      trains_(!options.frozen && !lora.on),
      adapters_train_(!options.frozen),
      generator_(at::make_generator<at::CPUGeneratorImpl>(options.seed)) {}

at::Tensor WeightMaker::train(const std::string& name, const at::Tensor& value) {
  // Always a copy, because mapped memory must not be written to.
  at::Tensor leaf = value.to(at::TensorOptions().dtype(at::kFloat).device(device_), false, /*copy=*/true);
  trained.emplace_back(name, leaf.set_requires_grad(true));
  return leaf;
}

at::Tensor WeightMaker::weight(const std::string& name, at::IntArrayRef shape) {
  const at::NoGradGuard no_grad;
  at::Tensor value = from_.take(name, shape);
  if (value.is_meta()) return value;  // an error that `check` will return
  formats[name] = value.scalar_type();
  if (const std::string in_file = from_.renamed(name); !in_file.empty()) file_names[name] = in_file;
  if (trains_) return train(name, value);
  // A checkpoint of adapters is valid only for the same weights, so the model's fingerprint includes them.
  frozen_hash.add(hash_contents(value.const_data_ptr(), value.nbytes()));
  frozen.emplace_back(name, value.to(device_));
  came_from(frozen.back().second, value);
  return frozen.back().second;
}

bool WeightMaker::targeted(const std::string& module) const {
  if (adapter_) return adapter_->tensors.contains(module + ".lora_A.weight");
  if (targets_.size() == 1 && targets_.front() == "all-linear") return true;
  return std::any_of(targets_.begin(), targets_.end(), [&](const std::string& target) {
    return module == target || module.ends_with("." + target);
  });
}

at::Tensor WeightMaker::read_part(const std::string& name, at::IntArrayRef shape) {
  const auto found = adapter_->tensors.find(name);
  if (found == adapter_->tensors.end()) {
    wrong_adapter_.push_back(name + " is missing");
  } else if (found->second.sizes() != shape) {
    wrong_adapter_.push_back(name + " is " + shape_text(found->second.sizes()) + ", not " +
                             shape_text(shape));
  } else if (!is_weight_format(found->second.scalar_type())) {
    wrong_adapter_.push_back(name + " is " + c10::toString(found->second.scalar_type()) +
                             ", not F32, F16, BF16 or F64");
  } else if (!finite(found->second)) {
    wrong_adapter_.push_back(name + " holds NaN or Inf");
  } else {
    at::Tensor value = found->second;
    adapter_->tensors.erase(found);
    return value;
  }
  if (found != adapter_->tensors.end()) adapter_->tensors.erase(found);
  return at::zeros(shape, at::kFloat);
}

std::optional<LoraPair> WeightMaker::adapter(const std::string& module, std::int64_t in, std::int64_t out) {
  modules_.push_back(module);
  if (!lora_.on || !targeted(module)) return std::nullopt;
  const at::NoGradGuard no_grad;
  LoraPair pair{.a = {}, .b = {}, .scale = lora_.scale(), .dropout = lora_.dropout};
  const std::string a = module + ".lora_A.weight", b = module + ".lora_B.weight";
  if (adapter_) {
    pair.a = read_part(a, {lora_.r, in});
    pair.b = read_part(b, {out, lora_.r});
  } else {
    // As in PEFT: A uniform in ±1/√in, B zero, so that the model is unchanged at first.
    const double bound = 1 / std::sqrt(static_cast<double>(in));
    pair.a = at::empty({lora_.r, in}, at::kFloat).uniform_(-bound, bound, generator_);
    pair.b = at::zeros({out, lora_.r}, at::kFloat);
  }
  if (adapters_train_) {
    pair.a = train(a, pair.a);
    pair.b = train(b, pair.b);
  } else {
    const auto options = at::TensorOptions().dtype(at::kFloat).device(device_);
    pair.a = pair.a.to(options);
    pair.b = pair.b.to(options);
    frozen.emplace_back(a, pair.a);
    frozen.emplace_back(b, pair.b);
  }
  adapted.push_back(module);
  return pair;
}

Status WeightMaker::check() const {
  if (Status s = from_.check(); !s) return s;
  if (!lora_.on) return {};
  if (adapter_) {
    std::vector<std::string> wrong = wrong_adapter_;
    for (const auto& [name, t] : adapter_->tensors) wrong.push_back(name + " is not in the model");
    if (!wrong.empty()) return does_not_fit(adapter_->path, wrong);
    if (adapted.empty())
      return Error{ErrorCode::bad_file, adapter_->path + ": holds no adapter",
                   "give an adapter of this model"};
    return {};
  }
  std::set<std::string> names;
  for (const std::string& module : modules_) names.insert(module.substr(module.rfind('.') + 1));
  std::string known;
  for (const std::string& name : names) known.append(known.empty() ? "" : ", ").append(name);
  for (const std::string& target : targets_)
    if (target != "all-linear" && std::none_of(modules_.begin(), modules_.end(), [&](const std::string& m) {
          return m == target || m.ends_with("." + target);
        }))
      return Error{ErrorCode::usage, "lora-targets: no module is called \"" + target.substr(0, 80) + "\"",
                   "the model has " + known + "; all-linear means all of them"};
  return {};
}

}  // namespace nanquest::trainer
