#include "trainer/model/gpt.h"

#include <ATen/ATen.h>

#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "probe/nanquest.h"
#include "trainer/model/layers.h"

namespace nanquest::trainer {
namespace {

/// Causal self-attention.
struct Attention {
  Linear qkv, out;
  LayerNorm q_norm, k_norm;
  std::int64_t heads = 0;
  bool qk_norm = false;
  AttentionForm form;
  std::optional<AttentionHeads> watched = {};

  Attention(ParameterStore& store, const std::string& path, const GptConfig& c, double residual_std)
      : qkv(store, path, "qkv", c.width, 3 * c.width, c.init_std),
        out(store, path, "out", c.width, c.width, residual_std),
        heads(c.heads),
        qk_norm(c.qk_norm),
        form(c.attention) {
    if (c.watch_logits) watched = heads_of(path, c.width);
    if (!qk_norm) return;
    q_norm = LayerNorm(store, path, "q_norm", c.width / c.heads, false);
    k_norm = LayerNorm(store, path, "k_norm", c.width / c.heads, false);
  }

  /// Queries are the first rows of the joint matrix, keys the next.
  AttentionHeads heads_of(const std::string& path, std::int64_t width) const {
    const at::Tensor weight = qkv.weight.detach(), bias = qkv.bias.detach();
    return {.name = path,
            .queries = {weight.narrow(0, 0, width), bias.narrow(0, 0, width)},
            .keys = {weight.narrow(0, width, width), bias.narrow(0, width, width)},
            .peaks = at::zeros({heads}, weight.options())};
  }

  at::Tensor operator()(const at::Tensor& x, bool training) const {
    const ModuleScope here("attention", "Attention");
    const std::int64_t batch = x.size(0), time = x.size(1), width = x.size(2), head_width = width / heads;
    const std::vector<at::Tensor> parts = qkv(x).split(width, 2);
    const auto per_head = [&](const at::Tensor& t) {
      return t.view({batch, time, heads, head_width}).transpose(1, 2);
    };
    at::Tensor q = per_head(parts[0]), k = per_head(parts[1]);
    const at::Tensor v = per_head(parts[2]);
    if (qk_norm) {
      q = q_norm(q);
      k = k_norm(k);
    }
    if (training && watched) watched->see(q, k);
    const at::Tensor seen = attend(q, k, v, {.form = form});
    return out(seen.transpose(1, 2).reshape({batch, time, width}));
  }
};

struct Mlp {
  Linear up, gate, down;
  Activation activation;

  Mlp(ParameterStore& store, const std::string& path, const GptConfig& c, double residual_std)
      : up(store, path, "up", c.width, c.hidden_width(), c.init_std), activation(c.activation) {
    if (activation == Activation::swiglu)
      gate = Linear(store, path, "gate", c.width, c.hidden_width(), c.init_std);
    down = Linear(store, path, "down", c.hidden_width(), c.width, residual_std);
  }

  at::Tensor operator()(const at::Tensor& x) const {
    const ModuleScope here("mlp", "Mlp");
    at::Tensor h = up(x);
    switch (activation) {
      case Activation::gelu:
        h = at::gelu(h);
        break;
      case Activation::relu2:
        h = at::relu(h).square();
        break;
      case Activation::swiglu:
        h = at::silu(gate(x)) * h;
        break;
    }
    return down(h);
  }
};

struct Block {
  std::string index;
  LayerNorm norm1, norm2;
  Attention attention;
  Mlp mlp;
  NormPlace place;
  double dropout;

  Block(ParameterStore& store, std::int64_t number, const GptConfig& c, double residual_std)
      : index(std::to_string(number)),
        norm1(store, "blocks." + index, "norm1", c.width),
        norm2(store, "blocks." + index, "norm2", c.width),
        attention(store, "blocks." + index + ".attention", c, residual_std),
        mlp(store, "blocks." + index + ".mlp", c, residual_std),
        place(c.norm),
        dropout(c.dropout) {}

  at::Tensor operator()(at::Tensor x, bool training) const {
    const ModuleScope here(index, "Block");
    const auto drop = [&](const at::Tensor& t) {
      return dropout > 0 ? at::dropout(t, dropout, training) : t;
    };
    if (place == NormPlace::pre) {
      x = x + drop(attention(norm1(x), training));
      return x + drop(mlp(norm2(x)));
    }
    x = norm1(x + drop(attention(x, training)));
    return norm2(x + drop(mlp(x)));
  }
};

class Gpt final : public Model {
 public:
  Gpt(const GptConfig& c, std::uint64_t seed, at::Device device)
      : config_(c),
        store_(seed, device),
        tokens_(store_, "token_embedding", c.vocabulary, c.width, c.init_std),
        positions_(store_, "position_embedding", c.context, c.width, c.init_std) {
    const double residual_std = c.init_std / std::sqrt(2.0 * static_cast<double>(c.depth));
    blocks_.reserve(static_cast<std::size_t>(c.depth));
    for (std::int64_t i = 0; i < c.depth; ++i) blocks_.emplace_back(store_, i, c, residual_std);
    final_norm_ = LayerNorm(store_, "", "final_norm", c.width);
    if (!c.tied_head) {
      head_ = Linear(store_, "", "head", c.width, c.vocabulary, c.init_std, false);
      return;
    }
    head_.name = "head";
    head_.weight = tokens_.weight;
  }

  at::Tensor forward(const at::Tensor& tokens, bool training) override {
    at::Tensor x = tokens_(tokens) + positions_(at::arange(tokens.size(1), tokens.options()));
    if (config_.dropout > 0) x = at::dropout(x, config_.dropout, training);
    {
      const ModuleScope here("blocks", "Blocks");
      for (const Block& block : blocks_) x = block(x, training);
    }
    return head_(final_norm_(x));
  }

  NamedTensors parameters() const override { return store_.all(); }
  std::vector<AttentionHeads> attention() const override {
    std::vector<AttentionHeads> layers;
    for (const Block& block : blocks_)
      if (block.attention.watched) layers.push_back(*block.attention.watched);
    return layers;
  }
  std::string description() const override {
    return std::to_string(config_.depth) + " blocks of width " + std::to_string(config_.width);
  }
  std::string fingerprint() const override {
    GptConfig c = config_;
    c.hidden = c.hidden_width();  // the same model as with its default written out
    SettingList list;
    declare(list, c);
    std::string text = "gpt";
    for (const Setting& s : list.all())
      if (s.key != "init-std" && s.key != "dropout" && s.key != "attention")
        text += " " + s.key + "=" + s.text();
    return text;
  }

 private:
  GptConfig config_;
  ParameterStore store_;
  Embedding tokens_, positions_;
  std::vector<Block> blocks_;
  LayerNorm final_norm_;
  Linear head_;
};

}  // namespace

Result<std::unique_ptr<Model>> make_gpt(const GptConfig& config, std::uint64_t seed, at::Device device) {
  if (Status s = check(config); !s) return s.error();
  return std::unique_ptr<Model>(std::make_unique<Gpt>(config, seed, device));
}

}  // namespace nanquest::trainer
