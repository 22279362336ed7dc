#include <cmath>
#include <string_view>
#include <utility>

#include "trainer/model/gpt.h"

namespace nanquest::trainer {
namespace {

constexpr std::pair<NormPlace, std::string_view> kNormPlaces[] = {{NormPlace::pre, "pre"},
                                                                  {NormPlace::post, "post"}};
constexpr std::pair<Activation, std::string_view> kActivations[] = {
    {Activation::gelu, "gelu"}, {Activation::relu2, "relu2"}, {Activation::swiglu, "swiglu"}};
constexpr std::pair<AttentionForm, std::string_view> kAttention[] = {{AttentionForm::written, "written"},
                                                                     {AttentionForm::fused, "fused"}};

}  // namespace

std::int64_t GptConfig::hidden_width() const {
  if (hidden > 0) return hidden;
  return activation == Activation::swiglu ? (width * 8 / 3 + 7) / 8 * 8 : 4 * width;
}

void declare(SettingList& list, GptConfig& c) {
  list.group("Model");
  list.add("depth", c.depth, "blocks");
  list.add("width", c.width, "width of the residual stream");
  list.add("heads", c.heads, "attention heads");
  list.add("context", c.context, "bytes a window predicts");
  list.add("hidden", c.hidden, "width inside the MLP (0 = 4 x width, 8/3 x for swiglu)");
  list.add("norm", c.norm, "layer norm before or after each part: pre, post", Words<NormPlace>(kNormPlaces));
  list.add("qk-norm", c.qk_norm, "normalise queries and keys");
  list.add("activation", c.activation, "gelu, relu2 or swiglu", Words<Activation>(kActivations));
  list.add("init-std", c.init_std, "standard deviation of fresh weights");
  list.add("dropout", c.dropout, "share of activations dropped");
  list.add("attention", c.attention,
           "fused: one op, faster; written: scores and softmax are ops of their own in a snapshot",
           Words<AttentionForm>(kAttention));
  list.add("tied-head", c.tied_head, "the output layer reuses the embedding (default)").negatable = true;
  // All but dropout and attention are in the fingerprint, or matter to fresh weights only.
  list.incidental({"depth", "width", "heads", "context", "hidden", "norm", "qk-norm", "activation",
                   "init-std", "tied-head"});
  list.check([&c] { return check(c); });
}

Status check(const GptConfig& c) {
  const auto wrong = [](std::string what, std::string hint) {
    return Error{ErrorCode::usage, std::move(what), std::move(hint)};
  };
  if (c.depth < 1 || c.depth > 1024)
    return wrong("depth " + std::to_string(c.depth) + " is out of range", "1 to 1024");
  if (c.width < 1 || c.width > 65536)
    return wrong("width " + std::to_string(c.width) + " is out of range", "1 to 65536");
  if (c.heads < 1 || c.width % c.heads != 0)
    return wrong(
        "width " + std::to_string(c.width) + " can't be split over " + std::to_string(c.heads) + " heads",
        "make the width a multiple of the heads");
  if (c.context < 1 || c.context > 1 << 20)
    return wrong("context " + std::to_string(c.context) + " is out of range", "1 to 1048576 bytes");
  if (c.vocabulary < 1)
    return wrong("vocabulary " + std::to_string(c.vocabulary) + " is out of range", "256 for bytes");
  if (c.hidden < 0)
    return wrong("hidden " + std::to_string(c.hidden) + " is negative", "0 means the default");
  if (!(c.init_std > 0) || !std::isfinite(c.init_std))
    return wrong("init-std must be a positive number", "try 0.02");
  if (!(c.dropout >= 0 && c.dropout < 1)) return wrong("dropout must be at least 0 and below 1", "try 0.1");
  return {};
}

}  // namespace nanquest::trainer
