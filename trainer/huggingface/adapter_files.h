/// PEFT's adapter folder: adapter_config.json and adapter_model.safetensors. Inside this room only.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "probe/base/result.h"
#include "trainer/huggingface/lora.h"
#include "trainer/task/named_tensors.h"

namespace nanquest::trainer {

/// An adapter as read: its options (`targets` as in the file, "" if they are a pattern) and its tensors by
/// their names without PEFT's prefix: "model.layers.0.self_attn.q_proj.lora_A.weight".
struct AdapterFolder {
  LoraOptions lora;
  std::map<std::string, at::Tensor> tensors;
  std::string config;  ///< text of adapter_config.json
  std::string path;    ///< path of the tensors, for errors
};

/// Reads `folder`. `unsupported` for what this program can't compute (DoRA, trained biases, …), `bad_file`
/// for invalid values.
Result<AdapterFolder> read_adapter(const std::string& folder);

/// Writes a folder that PEFT loads onto the model `base`. `modules` are the adapted ones, `transposed`
/// whether their weights are [in, out] (GPT-2), `tensors` by names as in AdapterFolder.
Status write_adapter(const std::string& folder, const LoraOptions& lora,
                     const std::vector<std::string>& targets, bool transposed, const std::string& base,
                     const NamedTensors& tensors);

}  // namespace nanquest::trainer
