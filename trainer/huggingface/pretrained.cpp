#include "trainer/huggingface/pretrained.h"

#include <ATen/ATen.h>

#include <sstream>
#include <utility>

#include "trainer/huggingface/decoder.h"

namespace nanquest::trainer {
namespace {

constexpr std::pair<AttentionForm, std::string_view> kForms[] = {{AttentionForm::written, "written"},
                                                                 {AttentionForm::fused, "fused"}};

/// "q_proj, v_proj" as a list; for "" PEFT's choice for the family.
std::vector<std::string> targets_of(const std::string& text, const DecoderConfig& config) {
  std::vector<std::string> targets;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const std::size_t begin = part.find_first_not_of(' ');
    if (begin == std::string::npos) continue;
    targets.push_back(part.substr(begin, part.find_last_not_of(' ') - begin + 1));
  }
  if (!targets.empty()) return targets;
  return config.gpt2 ? std::vector<std::string>{"c_attn"} : std::vector<std::string>{"q_proj", "v_proj"};
}

/// The current transformers' name of a weight or an adapter of a LLaVA: earlier versions, and files that they
/// saved, have the model's parts side by side and two more modules in the path.
std::string llava_name(const std::string& given) {
  constexpr std::pair<std::string_view, std::string_view> kBegins[] = {
      {"language_model.lm_head.", "lm_head."},
      {"language_model.", "model.language_model."},
      {"vision_tower.", "model.vision_tower."},
      {"multi_modal_projector.", "model.multi_modal_projector."},
      {"model.language_model.model.", "model.language_model."},
      {"model.vision_tower.vision_model.", "model.vision_tower."}};
  std::string name = given;
  for (const auto& [before, now] : kBegins)
    if (name.starts_with(before)) name = std::string(now) + name.substr(before.size());
  return name;
}

/// Files and transformers use different names for Mixtral's MLP.
std::string mixtral_name(const std::string& given) {
  constexpr std::string_view kInFiles = ".block_sparse_moe.";
  const std::size_t at = given.find(kInFiles);
  return at == std::string::npos ? given : given.substr(0, at) + ".mlp." + given.substr(at + kInFiles.size());
}

void rename(AdapterFolder& adapter) {
  std::map<std::string, at::Tensor> tensors;
  for (auto& [name, t] : adapter.tensors) tensors.emplace(llava_name(name), std::move(t));
  adapter.tensors = std::move(tensors);
}

/// Tensors in older files that are not weights: masks and tables that are computed here.
void pass_over_tables(FolderWeights& weights, const DecoderConfig& c) {
  for (std::int64_t i = 0; i < c.depth; ++i) {
    const std::string layer = c.root() + (c.gpt2 ? ".h." : ".layers.") + std::to_string(i);
    if (c.gpt2) {
      weights.pass_over(layer + ".attn.bias");
      weights.pass_over(layer + ".attn.masked_bias");
    } else {
      weights.pass_over(layer + ".self_attn.rotary_emb.inv_freq");
    }
  }
  if (c.images) weights.pass_over("model.vision_tower.embeddings.position_ids");
}

/// A head that is tied to the token embedding may be in the file again, but must be equal.
void pass_over_tied_head(FolderWeights& weights, const DecoderConfig& c) {
  const std::string table = c.root() + (c.gpt2 ? ".wte.weight" : ".embed_tokens.weight");
  if (!c.tied_head || !weights.has("lm_head.weight") || !weights.has(table)) return;
  weights.pass_over("lm_head.weight");
  const at::Tensor head = weights.peek("lm_head.weight"), tokens = weights.peek(table);
  if (head.sizes() != tokens.sizes() || head.scalar_type() != tokens.scalar_type() ||
      !at::equal(head, tokens))
    weights.note("lm_head.weight differs from " + table + ", to which config.json ties it");
}

Result<std::unique_ptr<PretrainedModel>> load(const std::string& folder, const PretrainedOptions& options) {
  Result<DecoderConfig> config = read_decoder_config(folder);
  if (!config) return config.error();
  Result<FolderWeights> weights = FolderWeights::open(folder);
  if (!weights) return weights.error();
  if (config->images) {
    weights->rename(llava_name);
  } else {
    if (config->experts > 0) weights->rename(mixtral_name);
    weights->leave_out(config->root());
    if (config->experts > 0) split_experts(*weights, *config);
  }
  pass_over_tables(*weights, *config);
  pass_over_tied_head(*weights, *config);
  LoraOptions lora = options.lora;
  std::optional<AdapterFolder> adapter;
  if (!options.adapter.empty()) {
    Result<AdapterFolder> read = read_adapter(options.adapter);
    if (!read) return read.error();
    adapter = std::move(*read);
    lora = adapter->lora;
    if (config->images) rename(*adapter);
  }
  std::vector<std::string> targets;
  if (lora.on && !(adapter && lora.targets.empty())) targets = targets_of(lora.targets, *config);
  WeightMaker make(std::move(*weights), std::move(adapter), lora, targets, options);
  auto decoder =
      std::make_unique<Decoder>(folder, std::move(*config), options, lora, std::move(targets), make);
  if (Status s = make.check(); !s) return s.error();
  return std::unique_ptr<PretrainedModel>(std::move(decoder));
}

}  // namespace

void declare(SettingList& list, PretrainedOptions& o) {
  list.group("Model");
  list.add("lora", o.lora.on, "train low-rank adapters, all weights of the model stay as they are");
  list.add("lora-r", o.lora.r, "rank of the adapters");
  list.add("lora-alpha", o.lora.alpha, "the adapters' share is multiplied with lora-alpha / lora-r");
  list.add("lora-dropout", o.lora.dropout, "share of what goes into an adapter that is dropped");
  list.add("lora-targets", o.lora.targets,
           "modules that get one: ends of names with commas between, or all-linear (default: as PEFT)")
      .type_name = "NAMES";
  list.add("adapter", o.adapter, "begin with the adapter in this folder, as PEFT wrote it").type_name =
      "FOLDER";
  list.add("hf-attention", o.attention,
           "written: scores and softmax are ops of their own in a snapshot; fused: one op, faster",
           Words<AttentionForm>(kForms));
  list.add("checkpointing", o.checkpointing,
           "what a layer computes is computed again in backward: less memory, a third more time")
      .negatable = true;
  list.incidental({"adapter"});
  list.check([&o] { return check(o); });
  // A person who sets adapter options wants adapters; without them the whole model would train.
  list.check([&o, usual = o.lora]() -> Status {
    if (o.lora.on || !o.adapter.empty()) return {};
    const char* given = o.lora.r != usual.r               ? "lora-r"
                        : o.lora.alpha != usual.alpha     ? "lora-alpha"
                        : o.lora.dropout != usual.dropout ? "lora-dropout"
                        : o.lora.targets != usual.targets ? "lora-targets"
                                                          : nullptr;
    if (given == nullptr) return {};
    return Error{ErrorCode::usage, std::string(given) + " without lora: all weights of the model would train",
                 std::string("give --lora too, or leave --") + given + " out"};
  });
}

Status check(const PretrainedOptions& o) {
  if (!o.lora.on) return {};
  return check(o.lora);
}

Result<std::unique_ptr<PretrainedModel>> load_pretrained(const std::string& folder,
                                                         const PretrainedOptions& options) {
  if (Status s = check(options); !s) return s.error();
  try {
    return load(folder, options);
  } catch (const std::exception& e) {
    const std::string what = e.what();
    return Error{ErrorCode::unsupported, folder + ": can't be loaded: " + what.substr(0, what.find('\n')),
                 "is there memory enough for it?"};
  }
}

}  // namespace nanquest::trainer
