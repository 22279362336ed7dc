#include "replay/trace/attention.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ExpandUtils.h>

#include <cmath>
#include <optional>

#include "probe/base/one_of.h"
#include "probe/tensor/tensor_scan.h"

namespace nanquest::trace {
namespace {

/// Arguments by their names in the schema: the three families order them differently.
class Arguments {
 public:
  Arguments(const c10::FunctionSchema& schema, const std::vector<c10::IValue>& stack)
      : schema_(schema), stack_(stack) {}

  const c10::IValue* find(std::initializer_list<std::string_view> names) const {
    for (std::size_t i = 0; i < schema_.arguments().size() && i < stack_.size(); ++i)
      for (const std::string_view name : names)
        if (schema_.arguments()[i].name() == name) return &stack_[i];
    return nullptr;
  }
  at::Tensor tensor(std::initializer_list<std::string_view> names) const {
    const c10::IValue* value = find(names);
    return value && value->isTensor() ? value->toTensor() : at::Tensor();
  }
  double real(std::string_view name, double otherwise) const {
    const c10::IValue* value = find({name});
    return value && value->isDouble() ? value->toDouble() : otherwise;
  }
  bool flag(std::string_view name) const {
    const c10::IValue* value = find({name});
    return value && value->isBool() && value->toBool();
  }

 private:
  const c10::FunctionSchema& schema_;
  const std::vector<c10::IValue>& stack_;
};

/// In fp32, or wider where it is.
at::Tensor wide(const at::Tensor& t) {
  return t.scalar_type() == at::kDouble ? t : t.to(at::kFloat);
}

/// Sums over the dimensions in which `of` was broadcast (or its heads repeated) to give `t`.
at::Tensor summed_to(const at::Tensor& t, const at::Tensor& of) {
  if (t.dim() == 4 && of.dim() == 4 && t.size(1) != of.size(1) && of.size(1) > 1) {
    const std::int64_t repeats = t.size(1) / of.size(1);
    return t.reshape({t.size(0), of.size(1), repeats, t.size(2), t.size(3)}).sum(2);
  }
  return at::sum_to(t, of.sizes());
}

struct Attention {
  at::Tensor q, k, v, bias;  ///< wide; k and v with as many heads as q
  double scale = 1;
  at::Tensor scores, shares, out;
  at::Tensor kept;  ///< the mask of a dropout, with its factor; undefined: none

  /// False if a row has no key left.
  bool compute(bool causal) {
    scores = at::matmul(q, k.transpose(-2, -1)).mul_(scale);
    if (bias.defined()) scores = scores + bias;
    if (causal) {
      const at::Tensor hidden =
          at::ones({scores.size(-2), scores.size(-1)}, scores.options().dtype(at::kBool)).triu(1);
      scores = scores.masked_fill(hidden, -INFINITY);
    }
    if ((scores == -INFINITY).all(-1).any().item<bool>()) return false;
    shares = at::softmax(scores, -1);
    out = at::matmul(dropped(shares), v);
    return true;
  }
  at::Tensor dropped(const at::Tensor& t) const { return kept.defined() ? t * kept : t; }
  void drop(double p, std::int64_t draw) {
    const at::Generator generator = at::detail::createCPUGenerator(static_cast<std::uint64_t>(draw));
    const std::int64_t rows = q.size(-2), keys = k.size(-2);
    std::vector<std::int64_t> sizes(q.sizes().begin(), q.sizes().end());
    sizes[sizes.size() - 2] = rows, sizes.back() = keys;
    kept = at::empty(sizes, q.options()).bernoulli_(1 - p, generator).mul_(p < 1 ? 1 / (1 - p) : 0);
  }
};

at::Tensor with_heads_of(const at::Tensor& t, const at::Tensor& q) {
  if (t.dim() != 4 || q.dim() != 4 || t.size(1) == q.size(1) || t.size(1) == 0 || q.size(1) % t.size(1) != 0)
    return t;
  return t.repeat_interleave(q.size(1) / t.size(1), 1);
}

std::optional<Attention> read(const Arguments& a, std::int64_t draw) {
  const at::Tensor q = a.tensor({"query"}), k = a.tensor({"key"}), v = a.tensor({"value"});
  if (!q.defined() || !k.defined() || !v.defined()) return std::nullopt;
  Attention attention;
  attention.q = wide(q);
  attention.k = with_heads_of(wide(k), q);
  attention.v = with_heads_of(wide(v), q);
  if (const at::Tensor bias = a.tensor({"attn_bias"}); bias.defined()) attention.bias = wide(bias);
  attention.scale = a.real("scale", 1 / std::sqrt(static_cast<double>(q.size(-1))));
  if (const double p = a.real("dropout_p", 0); p > 0) attention.drop(p, draw);
  if (!attention.compute(a.flag("is_causal"))) return std::nullopt;
  return attention;
}

/// The log-sum-exp in the shape in which the kernel stores it: with extra rows, or a dimension of one.
at::Tensor shaped(const at::Tensor& sums, const std::vector<std::int64_t>& sizes) {
  if (sizes.size() != static_cast<std::size_t>(sums.dim())) return sums.reshape(sizes);
  const std::int64_t more = sizes.empty() ? 0 : sizes.back() - sums.size(-1);
  return more == 0 ? sums : more > 0 ? at::constant_pad_nd(sums, {0, more}, INFINITY) : sums.new_empty(sizes);
}

std::vector<c10::IValue> forward(const std::vector<const TensorRow*>& outputs, std::int64_t draw,
                                 const Arguments& a, const Attention& attention) {
  std::vector<c10::IValue> returned;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const TensorRow* row = outputs[i];
    if (i == 0)
      returned.emplace_back(attention.out.to(a.tensor({"query"}).scalar_type()));
    else if (!row)
      returned.emplace_back(at::Tensor());
    else if (i == 1)
      returned.emplace_back(shaped(at::logsumexp(attention.scores, {-1}), row->sizes));
    else
      returned.emplace_back(at::full(row->sizes, draw, scalar_type_of(row->dtype)));
  }
  return returned;
}

std::vector<c10::IValue> backward(const std::vector<const TensorRow*>& outputs, const Arguments& a,
                                  const Attention& attention) {
  const at::Tensor grad = wide(a.tensor({"grad_out", "grad_out_"}));
  const at::Tensor grad_shares = at::matmul(grad, attention.v.transpose(-2, -1));
  const at::Tensor grad_scores =
      attention.shares * (attention.dropped(grad_shares) - (grad * attention.out).sum(-1, /*keepdim=*/true));
  const auto as_given = [&](const at::Tensor& t, std::string_view argument) {
    const at::Tensor given = a.tensor({argument});
    return summed_to(t, given).to(given.scalar_type());
  };
  std::vector<c10::IValue> returned{
      as_given(at::matmul(grad_scores, attention.k).mul(attention.scale), "query"),
      as_given(at::matmul(grad_scores.transpose(-2, -1), attention.q).mul(attention.scale), "key"),
      as_given(at::matmul(attention.dropped(attention.shares).transpose(-2, -1), grad), "value")};
  if (outputs.size() > returned.size())
    returned.emplace_back(outputs[3] && attention.bias.defined() ? as_given(grad_scores, "attn_bias")
                                                                 : at::Tensor());
  return returned;
}

}  // namespace

bool is_fused_attention(const std::string& name) {
  return is_one_of(
      name,
      {"aten::_scaled_dot_product_flash_attention", "aten::_scaled_dot_product_flash_attention_backward",
       "aten::_scaled_dot_product_efficient_attention",
       "aten::_scaled_dot_product_efficient_attention_backward", "aten::_scaled_dot_product_cudnn_attention",
       "aten::_scaled_dot_product_cudnn_attention_backward"});
}

bool compute_attention(const std::string& name, const c10::FunctionSchema& schema,
                       const std::vector<const TensorRow*>& outputs, std::int64_t draw,
                       std::vector<c10::IValue>& stack) {
  if (!is_fused_attention(name)) return false;
  const Arguments arguments(schema, stack);
  const bool back = name.ends_with("_backward");
  if (back) {
    if (!arguments.tensor({"grad_out", "grad_out_"}).defined()) return false;
    const at::Tensor seed = arguments.tensor({"philox_seed"});
    draw = seed.defined() && seed.numel() > 0 ? seed.flatten()[0].to(at::kLong).item<std::int64_t>() : 0;
  }
  const std::optional<Attention> attention = read(arguments, draw);
  if (!attention) return false;
  stack = back ? backward(outputs, arguments, *attention) : forward(outputs, draw, arguments, *attention);
  return true;
}

}  // namespace nanquest::trace
