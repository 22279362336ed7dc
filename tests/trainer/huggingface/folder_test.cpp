// A model folder is not trusted: each fault is named.
#include "tests/trainer/huggingface/tiny.h"
#include "trainer/checkpoint/safetensors_map.h"
#include "trainer/huggingface/pretrained.h"
#include "trainer/huggingface/saving.h"

namespace nanquest::trainer {
namespace {

using nlohmann::json;
using test::tiny_llama;
using test::tiny_llama_weights;

/// The error for a folder with these weights.
Error said_of(const std::string& folder, const NamedTensors& weights, const json& config = tiny_llama()) {
  const auto model = load_pretrained(test::write_folder(folder, config, weights));
  if (!model) return model.error();
  ADD_FAILURE() << "it was taken";
  return {};
}

NamedTensors changed(const std::string& name, const at::Tensor& value) {
  NamedTensors weights = tiny_llama_weights();
  test::weight(weights, name) = value;
  return weights;
}

NamedTensors without(const std::string& name) {
  NamedTensors weights = tiny_llama_weights();
  std::erase_if(weights, [&](const auto& named) { return named.first == name; });
  return weights;
}

void says(const Error& error, const std::string& text, ErrorCode code = ErrorCode::bad_file) {
  EXPECT_EQ(error.code, code) << error.text();
  EXPECT_NE(error.text().find(text), std::string::npos) << error.text();
  EXPECT_EQ(error.text().find('\n'), std::string::npos) << error.text();
}

TEST(Folder, WeightsThatDontFitAreNamed) {
  const test::Folder folder;
  says(said_of(folder / "missing", without("model.norm.weight")), "model.norm.weight is missing");
  NamedTensors surplus = tiny_llama_weights();
  surplus.emplace_back("model.layers.2.mlp.up_proj.weight", at::zeros({24, 16}));
  says(said_of(folder / "surplus", surplus), "model.layers.2.mlp.up_proj.weight is not in the model");
  const std::string q = "model.layers.1.self_attn.q_proj.weight";
  says(said_of(folder / "shape", changed(q, at::zeros({16, 8}))), q + " is [16, 8], not [16, 16]");
  says(said_of(folder / "integers", changed(q, at::zeros({16, 16}, at::kInt))), q + " is Int, not F32");
  at::Tensor bad = at::zeros({16, 16});
  bad[3][7] = NAN;
  says(said_of(folder / "nan", changed(q, bad)), q + " holds NaN or Inf");
  bad[3][7] = -INFINITY;
  says(said_of(folder / "inf", changed(q, bad.to(at::kBFloat16))), q + " holds NaN or Inf");
}

TEST(Folder, PackedExpertsThatDontFitAreNamed) {
  const test::Folder folder;
  json config = tiny_llama();
  config["model_type"] = "mixtral";
  config["architectures"] = {"MixtralForCausalLM"};
  config["num_local_experts"] = 3;
  const std::string experts = "model.layers.1.mlp.experts.";
  NamedTensors weights = tiny_llama_weights();
  weights.emplace_back(experts + "gate_up_proj", at::zeros({3, 47, 16}));
  says(said_of(folder / "shape", weights, config), experts + "gate_up_proj is [3, 47, 16], not [3, 48, 16]");
  weights.back().second = at::zeros({2, 48, 16});
  says(said_of(folder / "fewer", weights, config), experts + "gate_up_proj is [2, 48, 16], not [3, 48, 16]");
  weights.back() = {experts + "down_proj", at::zeros({3, 16, 24})};
  weights.emplace_back("model.layers.1.block_sparse_moe.experts.2.w2.weight", at::zeros({16, 24}));
  says(said_of(folder / "twice", weights, config),
       experts + "2.w2.weight is in " + experts + "down_proj too");
}

TEST(Folder, ManyFaultsAreOneLine) {
  const test::Folder folder;
  const Error error = said_of(folder / "empty", {{"x", at::zeros({1})}});
  says(error, "and 16 more");
}

TEST(Folder, ATiedHeadMustBeTheTable) {
  const test::Folder folder;
  json config = tiny_llama();
  config["tie_word_embeddings"] = true;
  says(said_of(folder / "other", tiny_llama_weights(), config),
       "lm_head.weight differs from model.embed_tokens.weight");
  NamedTensors weights = tiny_llama_weights();
  test::weight(weights, "lm_head.weight") = test::weight(weights, "model.embed_tokens.weight").clone();
  const auto model = load_pretrained(test::write_folder(folder / "same", config, weights));
  ASSERT_TRUE(model) << model.error().text();
  for (const auto& [name, t] : (*model)->parameters()) EXPECT_NE(name, "lm_head.weight");
}

/// A folder of two shards, and its index.
json sharded(const std::string& folder) {
  test::write_file(folder + "/config.json", tiny_llama().dump());
  EXPECT_TRUE(write_weights(folder, tiny_llama_weights(), 6000));
  return json::parse(test::read_file(folder + "/model.safetensors.index.json"));
}

TEST(Folder, ShardsAreWrittenAndRead) {
  const test::Folder folder;
  const json index = sharded(folder / "m");
  EXPECT_GT(index["metadata"]["total_size"], 6000);
  const auto model = load_pretrained(folder / "m");
  ASSERT_TRUE(model) << model.error().text();
  NamedTensors weights = tiny_llama_weights();
  for (const auto& [name, t] : (*model)->parameters())
    EXPECT_TRUE(at::equal(t, test::weight(weights, name))) << name;
  // After a later save as one file, no shard remains that would be read with it.
  ASSERT_TRUE(write_weights(folder / "m", weights));
  EXPECT_FALSE(std::filesystem::exists(folder / "m/model.safetensors.index.json"));
  EXPECT_TRUE(load_pretrained(folder / "m"));
}

TEST(Folder, AnIndexDoesNotLeadOutside) {
  const test::Folder folder;
  for (const char* shard : {"../model-00001-of-00002.safetensors", "/etc/passwd.safetensors",
                            "a/b.safetensors", "..", "", "b\\c.safetensors", "model.bin"}) {
    json index = sharded(folder / "m");
    index["weight_map"]["model.norm.weight"] = shard;
    test::write_file(folder / "m/model.safetensors.index.json", index.dump());
    const auto model = load_pretrained(folder / "m");
    ASSERT_FALSE(model) << shard;
    says(model.error(), "is not the plain name of a .safetensors file");
  }
}

TEST(Folder, AnIndexThatIsWrongIsNamed) {
  const test::Folder folder;
  const std::string path = folder / "m/model.safetensors.index.json";
  const auto refused = [&](const json& index, const std::string& text) {
    test::write_file(path, index.dump());
    const auto model = load_pretrained(folder / "m");
    ASSERT_FALSE(model) << text;
    says(model.error(), text);
  };
  json index = sharded(folder / "m");
  json more = index;
  more["weight_map"]["model.extra"] = index["weight_map"]["model.norm.weight"];
  refused(more, "model.extra is not in model-");
  json fewer = index;
  fewer["weight_map"].erase("model.norm.weight");
  refused(fewer, "holds model.norm.weight, which the index does not say");
  json gone = index;
  for (auto& [name, shard] : gone["weight_map"].items()) shard = "model-00009-of-00009.safetensors";
  refused(gone, "model-00009-of-00009.safetensors: ");
  refused({{"weight_map", {{"a", 7}}}}, "a: its shard is not a text");
  refused({{"metadata", {}}}, "weight_map is missing");
  test::write_file(path, "{");
  EXPECT_EQ(load_pretrained(folder / "m").error().code, ErrorCode::bad_file);
}

TEST(Folder, DamagedAndForeignWeightsAreNamed) {
  const test::Folder folder;
  const std::string path = test::write_tiny_llama(folder / "m") + "/model.safetensors";
  const std::string whole = test::read_file(path);
  for (const std::size_t length : {std::size_t{0}, std::size_t{7}, std::size_t{100}, whole.size() - 1}) {
    test::write_file(path, whole.substr(0, length));
    const auto model = load_pretrained(folder / "m");
    ASSERT_FALSE(model);
    says(model.error(), "model.safetensors: ");
  }
  std::filesystem::remove(path);
  says(load_pretrained(folder / "m").error(), "neither model.safetensors nor");
  test::write_file(folder / "m/pytorch_model.bin", "x");
  says(load_pretrained(folder / "m").error(), "pytorch_model.bin only", ErrorCode::unsupported);
}

TEST(MappedSafetensors, AWriteToATensorStaysInMemory) {
  const test::Folder folder;
  const std::string path = folder / "x.safetensors";
  ASSERT_TRUE(
      write_safetensors(path, {{"odd", at::ones({3}, at::kByte)}, {"w", at::ones({4})}}, {{"k", "v"}}));
  const std::string before = test::read_file(path);
  {
    auto file = map_safetensors(path);
    ASSERT_TRUE(file) << file.error().text();
    EXPECT_EQ(file->metadata.at("k"), "v");
    for (auto& [name, t] : file->tensors) t.zero_();
    const at::Tensor kept = file->tensors.front().second;
    file = Error{};
    EXPECT_EQ(kept.sum().item<double>(), 0);  // it keeps the mapping
  }
  EXPECT_EQ(test::read_file(path), before);
}

}  // namespace
}  // namespace nanquest::trainer
