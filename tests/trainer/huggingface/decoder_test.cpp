// The decoder as a model of the trainer: what trains, what is saved, what is refused. reference_test.py
// compares its numbers with transformers.
#include <set>

#include "probe/nanquest.h"
#include "tests/trainer/huggingface/tiny.h"
#include "trainer/huggingface/pretrained.h"
#include "trainer/precision/autocast.h"
#include "trainer/text/next_token.h"

namespace nanquest::trainer {
namespace {

using nlohmann::json;

std::unique_ptr<PretrainedModel> loaded(const std::string& folder, const PretrainedOptions& options = {}) {
  auto model = load_pretrained(folder, options);
  if (!model) throw std::runtime_error(model.error().text());
  return std::move(*model);
}

PretrainedOptions adapted(const std::string& targets = "", double dropout = 0.05) {
  PretrainedOptions o;
  o.lora = {.on = true, .r = 2, .alpha = 4, .dropout = dropout, .targets = targets};
  return o;
}

at::Tensor tokens() {
  at::manual_seed(3);
  return at::randint(0, 31, {2, 12}, at::kLong);
}

/// Gradients by name after one backward pass, with the generator as it is after `manual_seed(9)`.
std::map<std::string, at::Tensor> gradients(PretrainedModel& model, bool autocast = false) {
  const at::Tensor in = tokens();
  at::manual_seed(9);
  at::Tensor loss;
  {
    const AutocastGuard guard(at::kCPU, autocast ? at::kBFloat16 : at::kFloat);
    loss = next_token_loss(model.forward(in, true), in);
  }
  loss.backward();
  std::map<std::string, at::Tensor> found;
  for (const auto& [name, p] : model.parameters()) found[name] = p.grad().clone();
  return found;
}

TEST(Pretrained, TrainedWeightsAreLeavesInFp32AndFrozenOnesKeepTheirFormat) {
  const test::Folder folder;
  NamedTensors weights = test::tiny_llama_weights();
  for (auto& [name, t] : weights) t = t.to(at::kBFloat16);
  const std::string path = test::write_folder(folder / "m", test::tiny_llama(), weights);
  const auto full = loaded(path);
  EXPECT_EQ(full->parameters().size(), weights.size());
  EXPECT_TRUE(full->frozen().empty());
  for (const auto& [name, p] : full->parameters())
    EXPECT_TRUE(p.is_leaf() && p.requires_grad() && p.scalar_type() == at::kFloat) << name;
  const auto lora = loaded(path, adapted());
  std::set<std::string> names;
  for (const auto& [name, p] : lora->parameters()) names.insert(name);
  EXPECT_EQ(names.size(), 8u);
  EXPECT_TRUE(names.contains("model.layers.1.self_attn.v_proj.lora_B.weight"));
  for (const auto& [name, p] : lora->frozen())
    EXPECT_TRUE(!p.requires_grad() && p.scalar_type() == at::kBFloat16) << name;
  PretrainedOptions frozen;
  frozen.frozen = true;
  EXPECT_TRUE(loaded(path, frozen)->parameters().empty());
}

TEST(Pretrained, NobodyLooksAhead) {
  const test::Folder folder;
  const auto model = loaded(test::write_tiny_llama(folder / "m"));
  at::Tensor in = tokens();
  const at::Tensor before = model->forward(in, false).detach().clone();
  in.select(1, 11).fill_(1);
  const at::Tensor after = model->forward(in, false).detach();
  EXPECT_TRUE(at::equal(before.narrow(1, 0, 11), after.narrow(1, 0, 11)));
  EXPECT_FALSE(at::equal(before, after));
}

TEST(Pretrained, CheckpointingChangesNoBitOfAGradient) {
  const test::Folder folder;
  json config = test::tiny_llama();
  config["attention_dropout"] = 0.3;
  const std::string path = test::write_folder(folder / "m", config, test::tiny_llama_weights());
  for (const bool with_adapters : {false, true})
    for (const bool autocast : {false, true}) {
      PretrainedOptions options = with_adapters ? adapted("all-linear", 0.5) : PretrainedOptions{};
      const auto plain = gradients(*loaded(path, options), autocast);
      options.checkpointing = true;
      const auto again = gradients(*loaded(path, options), autocast);
      ASSERT_EQ(plain.size(), again.size());
      for (const auto& [name, gradient] : plain)
        EXPECT_TRUE(at::equal(gradient, again.at(name))) << name << (autocast ? " under autocast" : "");
    }
}

TEST(Pretrained, TheSameSeedGivesTheSameAdapters) {
  const test::Folder folder;
  const std::string path = test::write_tiny_llama(folder / "m");
  PretrainedOptions options = adapted();
  const auto a = loaded(path, options)->parameters(), b = loaded(path, options)->parameters();
  options.seed = 43;
  const auto c = loaded(path, options)->parameters();
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(at::equal(a[i].second, b[i].second));
  EXPECT_FALSE(at::equal(a[0].second, c[0].second));
}

TEST(Pretrained, ModulesAreCalledAsHuggingFaceCallsThem) {
  const test::Folder folder;
  const auto model = loaded(test::write_tiny_llama(folder / "m"), adapted("up_proj"));
  model->parameters().front().second.detach().fill_(NAN);
  ProbeOptions options;
  options.run_dir = folder / "run";
  const auto probe = std::move(*Probe::create(options));
  for (const auto& [name, p] : model->parameters()) probe->watch_parameter(name, p);
  const at::Tensor in = tokens();
  const StepReport report = probe->step({.step = 0}, [&] {
    at::Tensor loss = next_token_loss(model->forward(in, true), in);
    loss.backward();
    return loss;
  });
  EXPECT_FALSE(report.ok());
  EXPECT_NE(report.summary.find("model.layers.0.mlp.up_proj"), std::string::npos) << report.summary;
}

TEST(Lora, TheFingerprintIsOfTheFrozenWeightsToo) {
  const test::Folder folder;
  NamedTensors weights = test::tiny_llama_weights();
  const auto of = [&](const char* name, const PretrainedOptions& options) {
    return loaded(test::write_folder(folder / name, test::tiny_llama(), weights), options)->fingerprint();
  };
  const std::string before = of("a", adapted()), trained = of("b", {});
  EXPECT_EQ(of("c", adapted()), before);
  EXPECT_NE(of("d", adapted("q_proj")), before);
  test::weight(weights, "model.norm.weight")[3] += 1;
  EXPECT_NE(of("e", adapted()), before);
  EXPECT_EQ(of("f", {}), trained);
}

TEST(Lora, ATargetThatIsNowhereIsNamedWithWhatIsThere) {
  const test::Folder folder;
  const auto model = load_pretrained(test::write_tiny_llama(folder / "m"), adapted("q_proj,c_attn"));
  ASSERT_FALSE(model);
  EXPECT_EQ(
      model.error().text(),
      "lora-targets: no module is called \"c_attn\" (the model has down_proj, gate_proj, k_proj, o_proj, "
      "q_proj, up_proj, v_proj; all-linear means all of them)");
}

TEST(Lora, OptionsThatMakeNoSenseAreRefused) {
  for (const LoraOptions& o : {LoraOptions{.r = 0}, LoraOptions{.alpha = 0}, LoraOptions{.alpha = NAN},
                               LoraOptions{.dropout = 1}, LoraOptions{.dropout = -0.1}})
    EXPECT_EQ(check(o).error().code, ErrorCode::usage);
  EXPECT_TRUE(check(LoraOptions{}));
}

/// The error for an adapter with a changed config or changed tensors.
std::string said_of_adapter(const std::string& folder, const json& change, const NamedTensors& tensors = {}) {
  const auto model = loaded(test::write_tiny_llama(folder + "/m"), adapted());
  EXPECT_TRUE(model->save_adapter(folder + "/a"));
  json config = json::parse(test::read_file(folder + "/a/adapter_config.json"));
  config.update(change);
  test::write_file(folder + "/a/adapter_config.json", config.dump());
  if (!tensors.empty()) {
    EXPECT_TRUE(write_safetensors(folder + "/a/adapter_model.safetensors", tensors, {}));
  }
  PretrainedOptions options;
  options.adapter = folder + "/a";
  const auto again = load_pretrained(folder + "/m", options);
  return again ? "" : again.error().text();
}

TEST(Lora, AnAdapterThatCantBeComputedIsRefused) {
  const test::Folder folder;
  EXPECT_EQ(said_of_adapter(folder.path(), json::object()), "");
  const std::pair<json, const char*> cases[] = {
      {{{"peft_type", "IA3"}}, "peft_type \"IA3\" is not known (known: LORA)"},
      {{{"use_dora", true}}, "use_dora \"true\" is not known"},
      {{{"bias", "all"}}, "bias \"all\" is not known (known: none)"},
      {{{"rank_pattern", {{"q_proj", 4}}}}, "rank_pattern"},
      {{{"modules_to_save", {"lm_head"}}}, "modules_to_save"},
      {{{"r", 3}}, "is [2, 16], not [3, 16]"},
      {{{"r", -1}}, "r is -1"},
      {{{"lora_alpha", "x"}}, "lora_alpha"},
  };
  for (const auto& [change, text] : cases) {
    const std::string said = said_of_adapter(folder.path(), change);
    EXPECT_NE(said.find(text), std::string::npos) << said;
  }
  const std::string a = "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight";
  EXPECT_NE(said_of_adapter(folder.path(), json::object(), {{"q_proj.lora_A.weight", at::zeros({2, 16})}})
                .find("does not begin with base_model.model."),
            std::string::npos);
  EXPECT_NE(said_of_adapter(folder.path(), json::object(), {{a, at::zeros({2, 16})}})
                .find("model.layers.0.self_attn.q_proj.lora_B.weight is missing"),
            std::string::npos);
  EXPECT_NE(said_of_adapter(folder.path(), json::object(), {{a + "x", at::zeros({2, 16})}})
                .find("is not in the model"),
            std::string::npos);
}

TEST(Saving, WhereTheModelCameFromIsRefused) {
  const test::Folder folder;
  const auto model = loaded(test::write_tiny_llama(folder / "m"));
  const Status saved = model->save(folder / "m/../m");
  ASSERT_FALSE(saved);
  EXPECT_EQ(saved.error().code, ErrorCode::usage);
  EXPECT_TRUE(load_pretrained(folder / "m"));
  EXPECT_EQ(model->save_adapter(folder / "a").error().code, ErrorCode::usage);
}

TEST(Saving, WhatWasSavedIsLoadedAgain) {
  const test::Folder folder;
  const auto model = loaded(test::write_tiny_llama(folder / "m"), adapted("all-linear"));
  for (const auto& [name, p] : model->parameters()) at::Tensor(p).detach().normal_(0, 0.3);
  ASSERT_TRUE(model->save(folder / "merged"));
  ASSERT_TRUE(model->save_adapter(folder / "adapter"));
  const at::Tensor in = tokens(), logits = model->forward(in, false).detach();
  const auto near = [&](PretrainedModel& other) {
    return ((other.forward(in, false) - logits).norm() / logits.norm()).item<double>();
  };
  EXPECT_LT(near(*loaded(folder / "merged")), 1e-5);
  PretrainedOptions options;
  options.adapter = folder / "adapter";
  EXPECT_EQ(near(*loaded(folder / "m", options)), 0);
  EXPECT_EQ(loaded(folder / "m", options)->fingerprint(), model->fingerprint());
  EXPECT_GT(near(*loaded(folder / "m")), 0.01);
}

TEST(Saving, AFullDiskLeavesNoModelThatIsHalfThere) {
  const test::Folder folder;
  const auto model = loaded(test::write_tiny_llama(folder / "m"));
  test::write_file(folder / "file", "");
  EXPECT_EQ(model->save(folder / "file/m").error().code, ErrorCode::io);
  EXPECT_FALSE(std::filesystem::exists(folder / "file/m"));
}

TEST(Pretrained, SettingsAreDeclaredOnce) {
  SettingList list;
  PretrainedOptions options;
  declare(list, options);
  std::set<std::string> keys;
  for (const Setting& s : list.all()) keys.insert(s.key);
  EXPECT_EQ(keys, (std::set<std::string>{"lora", "lora-r", "lora-alpha", "lora-dropout", "lora-targets",
                                         "adapter", "hf-attention", "checkpointing"}));
  options.lora = {.on = true, .r = 0};
  EXPECT_FALSE(list.check());
}

}  // namespace
}  // namespace nanquest::trainer
