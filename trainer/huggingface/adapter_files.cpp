#include "trainer/huggingface/adapter_files.h"

#include <ATen/ATen.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "probe/nanquest.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/checkpoint/safetensors_map.h"
#include "trainer/checkpoint/strict_json.h"
#include "trainer/huggingface/config_reader.h"

namespace nanquest::trainer {
namespace {

constexpr std::string_view kPrefix = "base_model.model.";
constexpr int kDeepestAdapter = 16;

/// Refuses options that change an adapter's result and are not supported.
void check_extras(const ConfigReader& file, const nlohmann::json& object) {
  if (const std::string type = file.text("peft_type", ""); type != "LORA")
    file.unknown("peft_type", type, "LORA");
  for (const char* key : {"use_dora", "lora_bias", "use_qalora"})
    if (file.flag(key, false)) file.unknown(key, "true", "false");
  if (const std::string bias = file.text("bias", "none"); bias != "none") file.unknown("bias", bias, "none");
  for (const char* key : {"rank_pattern", "alpha_pattern", "modules_to_save", "trainable_token_indices",
                          "layer_replication", "target_parameters", "alora_invocation_tokens"})
    if (file.has(key) && !object[key].empty()) file.unknown(key, object[key].dump().substr(0, 40), "none");
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text.append(text.empty() ? "" : ",").append(part);
  return text;
}

LoraOptions read_options(const std::string& text, const std::string& path) {
  const nlohmann::json object = parse_strictly(text, "the file", kDeepestAdapter);
  const ConfigReader file(object, path + ": ");
  check_extras(file, object);
  LoraOptions lora;
  lora.on = true;
  lora.r = file.size("r", 8);
  lora.alpha = file.number("lora_alpha", 8, 1e-12);
  lora.dropout = file.number("lora_dropout", 0);
  lora.rank_scaled = file.flag("use_rslora", false);
  if (file.has("target_modules") && object["target_modules"].is_array())
    lora.targets = joined(file.texts("target_modules"));
  if (lora.dropout >= 1) file.wrong("lora_dropout is not below 1");
  return lora;
}

}  // namespace

Result<AdapterFolder> read_adapter(const std::string& folder) {
  AdapterFolder adapter;
  const std::string path = folder + "/adapter_config.json";
  adapter.path = folder + "/adapter_model.safetensors";
  std::error_code ec;
  if (!std::filesystem::exists(path, ec))
    return Error{ErrorCode::bad_file, folder + " is no folder of an adapter: it has no adapter_config.json",
                 "give the folder that PEFT's save_pretrained made"};
  Result<std::string> text = read_whole_file(path, kLargestConfig);
  if (!text) return text.error();
  try {
    adapter.lora = read_options(*text, path);
  } catch (const Refused& e) {
    return e.error;
  } catch (const BadFile& e) {
    return Error{ErrorCode::bad_file, path + ": " + e.what, "give the file as PEFT wrote it"};
  }
  adapter.config = std::move(*text);
  Result<MappedSafetensors> file = map_safetensors(adapter.path);
  if (!file) return file.error();
  for (auto& [name, t] : file->tensors) {
    if (!name.starts_with(kPrefix))
      return Error{ErrorCode::bad_file,
                   adapter.path + ": " + name.substr(0, 80) + " does not begin with " + std::string(kPrefix),
                   "give the adapter as PEFT wrote it"};
    adapter.tensors.emplace(name.substr(kPrefix.size()), std::move(t));
  }
  return adapter;
}

Status write_adapter(const std::string& folder, const LoraOptions& lora,
                     const std::vector<std::string>& targets, bool transposed, const std::string& base,
                     const NamedTensors& tensors) {
  NamedTensors named;
  for (const auto& [name, t] : tensors) named.emplace_back(std::string(kPrefix) + name, t);
  if (Status s = write_safetensors(folder + "/adapter_model.safetensors", named, {}); !s) return s;
  nlohmann::json config = {{"peft_type", "LORA"},
                           {"task_type", "CAUSAL_LM"},
                           {"base_model_name_or_path", base},
                           {"r", lora.r},
                           {"lora_alpha", lora.alpha},
                           {"lora_dropout", lora.dropout},
                           {"target_modules", targets},
                           {"bias", "none"},
                           {"fan_in_fan_out", transposed},
                           {"use_rslora", lora.rank_scaled},
                           {"use_dora", false},
                           {"init_lora_weights", true},
                           {"inference_mode", true},
                           {"modules_to_save", nullptr}};
  // PEFT writes a whole number.
  if (lora.alpha == static_cast<double>(static_cast<std::int64_t>(lora.alpha)))
    config["lora_alpha"] = static_cast<std::int64_t>(lora.alpha);
  const std::string text = config.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  return write_file_atomically(folder + "/adapter_config.json", text);
}

}  // namespace nanquest::trainer
