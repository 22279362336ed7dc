#include "replay/cause/parts.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <cmath>
#include <limits>
#include <memory>
#include <set>

#include "replay/case/values.h"
#include "replay/trace/operators.h"

namespace nanquest {
namespace {

/// The culprit's arguments, by the names of its schema.
class Given {
 public:
  explicit Given(const Case& c) : c_(c) {}
  at::Tensor tensor(std::string_view name) const { return tensor_of(argument(c_, c_.op_index(), name)); }
  double number(std::string_view name, double otherwise) const {
    const c10::IValue v = argument(c_, c_.op_index(), name);
    const at::Tensor t = operand_of(v);
    return t.defined() && t.numel() == 1 ? wide(t).item<double>() : otherwise;
  }
  bool flag(std::string_view name) const {
    const c10::IValue v = argument(c_, c_.op_index(), name);
    return v.isBool() && v.toBool();
  }
  /// A copy that the parts may write into.
  at::Tensor own(std::string_view name) const {
    const at::Tensor t = tensor(name);
    return t.defined() ? t.detach().clone() : t;
  }

 private:
  const Case& c_;
};

void add(NamedTensors& list, const char* name, const at::Tensor& t) {
  if (t.defined()) list.emplace_back(name, t);
}

// Attention.

struct Attention {
  at::Tensor query, key, value, mask;
  bool causal = false;
  std::optional<double> scale;
};

at::Tensor computed(const Attention& a) {
  return std::get<0>(at::_scaled_dot_product_attention_math(
      a.query, a.key, a.value, a.mask.defined() ? std::optional(a.mask) : std::nullopt, 0.0, a.causal,
      std::nullopt, a.scale));
}

Attention attention_of(const Given& given) {
  Attention a{given.own("query"), given.own("key"), given.own("value"), given.own("attn_mask"), {}, {}};
  if (!a.mask.defined()) a.mask = given.own("attn_bias");
  a.causal = given.flag("is_causal");
  if (const double scale = given.number("scale", NAN); std::isfinite(scale)) a.scale = scale;
  return a;
}

Parts attention(const Given& given) {
  const Attention a = attention_of(given);
  Parts parts;
  add(parts.given, "query", a.query), add(parts.given, "key", a.key), add(parts.given, "value", a.value);
  add(parts.given, "attn_mask", a.mask);
  std::vector<std::int64_t> shape = a.query.sizes().vec();
  shape.back() = a.value.size(-1);
  const at::Tensor output = at::zeros(shape, a.query.options());
  parts.results = {{"output", output}};
  parts.run = [a, output] { output.copy_(computed(a)); };
  return parts;
}

Parts attention_backward(const Given& given) {
  const Attention a = attention_of(given);
  const at::Tensor sent = given.own("grad_out").defined() ? given.own("grad_out") : given.own("grad_out_");
  Parts parts;
  add(parts.given, "query", a.query), add(parts.given, "key", a.key), add(parts.given, "value", a.value);
  add(parts.given, "attn_mask", a.mask), add(parts.given, "grad_out", sent);
  const std::vector<at::Tensor> read = {a.query, a.key, a.value};
  const char* const names[] = {"grad_query", "grad_key", "grad_value"};
  for (std::size_t i = 0; i < read.size(); ++i) parts.results.emplace_back(names[i], at::zeros_like(read[i]));
  parts.run = [a, sent, read, results = parts.results] {
    {
      const at::AutoGradMode differentiated(true);
      for (const at::Tensor& t : read) t.requires_grad_(true);
      computed(a).backward(sent);
    }
    for (std::size_t i = 0; i < read.size(); ++i)
      if (read[i].grad().defined()) results[i].second.copy_(read[i].grad());
  };
  return parts;
}

// Payload times scale.

std::optional<Parts> scaled_product(const Case& c, const Given& given) {
  const at::Tensor a = given.own("self"), scale_a = given.own("scale_a"), b = given.own("mat2"),
                   scale_b = given.own("scale_b"), bias = given.own("bias"), last = given.own("scale_result");
  const at::Tensor recorded = c.values(c.op_index()).bad_output();
  const auto product_of = [=] {
    return trace::scaled_product(a.to(at::kFloat), scale_a, b.to(at::kFloat), scale_b, bias);
  };
  if (!a.defined() || !b.defined() || !recorded.defined() || !product_of().defined()) return std::nullopt;
  const at::Tensor output = at::zeros_like(recorded);
  Parts parts;
  add(parts.given, "self", a), add(parts.given, "mat2", b), add(parts.given, "bias", bias);
  add(parts.given, "scale_a", scale_a), add(parts.given, "scale_b", scale_b);
  parts.results = {{"output", output}};
  parts.run = [=] {
    at::Tensor product = product_of();
    if (last.defined() && c10::elementSize(output.scalar_type()) == 1) product = at::mul(product, last);
    output.copy_(product);
  };
  return parts;
}

// Normalisations.

/// (x - mean) / root(variance + eps) over `dims`, times weight plus bias if there are any, in the format that
/// kernels compute in; without `centred` the mean is kept.
struct Normalised {
  at::Tensor input, weight, bias;  ///< the input in the shape that is normalised
  std::vector<std::int64_t> dims, affine;
  double eps = 0;
  bool centred = true;
};

Parts normalised(const Normalised& n, const at::Tensor& recorded) {
  Parts parts;
  for (const auto& [name, t] : {std::pair{"input", n.input}, {"weight", n.weight}, {"bias", n.bias}})
    if (t.defined()) parts.given.emplace_back(name, t);
  const at::Tensor output = at::zeros_like(recorded);
  parts.results = {{"output", output}};
  parts.run = [n, output] {
    at::Tensor x = at::isReducedFloatingType(n.input.scalar_type()) ? n.input.to(at::kFloat) : n.input;
    if (n.centred) x = at::sub(x, at::mean(x, n.dims, true));
    const at::Tensor variance = at::mean(at::mul(x, x), n.dims, true);
    at::Tensor y = at::mul(x, at::rsqrt(at::add(variance, n.eps)));
    y = y.reshape(output.sizes());
    if (n.weight.defined()) y = at::mul(y, n.weight.view(n.affine));
    if (n.bias.defined()) y = at::add(y, n.bias.view(n.affine));
    output.copy_(y);
  };
  return parts;
}

std::vector<std::int64_t> last_dims(std::int64_t n) {
  std::vector<std::int64_t> dims;
  for (std::int64_t d = n; d > 0; --d) dims.push_back(-d);
  return dims;
}

std::optional<Parts> normalisation(const Case& c, const Given& given, const std::string& name) {
  const at::Tensor input = given.own("input"), recorded = c.values(c.op_index()).bad_output();
  if (!input.defined() || !recorded.defined() || recorded.numel() != input.numel()) return std::nullopt;
  Normalised n{
      input, given.own("weight"), given.own("bias"), {}, {}, given.number("eps", given.number("epsilon", 0)),
      true};
  if (name == "native_layer_norm" || name == "_fused_rms_norm") {
    const c10::IValue shape = argument(c, c.op_index(), "normalized_shape");
    if (!shape.isIntList()) return std::nullopt;
    n.affine = shape.toIntVector();
    n.dims = last_dims(static_cast<std::int64_t>(n.affine.size()));
    n.centred = name == "native_layer_norm";
    if (!n.centred && n.eps == 0) n.eps = std::numeric_limits<float>::epsilon();
    return normalised(n, recorded);
  }
  if (input.dim() < 2) return std::nullopt;
  n.affine.assign(static_cast<std::size_t>(input.dim()), 1);
  n.affine[1] = input.size(1);
  if (name == "native_group_norm") {
    const auto groups = static_cast<std::int64_t>(given.number("group", 1));
    n.input = input.reshape({input.size(0), groups, -1}).clone();
    n.dims = {-1};
    return normalised(n, recorded);
  }
  const bool training = given.flag("training") || name == "_batch_norm_with_update" ||
                        (name == "_native_batch_norm_legit" && given.flag("training"));
  if (!training) return std::nullopt;
  n.dims = {0};
  for (std::int64_t d = 2; d < input.dim(); ++d) n.dims.push_back(d);
  return normalised(n, recorded);
}

/// Direction v divided by its norm over all dimensions but `dim`, times the length g.
std::optional<Parts> normed_weight(const Given& given) {
  const at::Tensor v = given.own("v"), g = given.own("g");
  const auto dim = static_cast<std::int64_t>(given.number("dim", 0));
  if (!v.defined() || !g.defined() || v.dim() == 0 || dim < 0 || dim >= v.dim()) return std::nullopt;
  std::vector<std::int64_t> others;
  for (std::int64_t d = 0; d < v.dim(); ++d)
    if (d != dim) others.push_back(d);
  // The norm of a vector over no dimensions would be one number.
  if (others.empty()) return std::nullopt;
  std::vector<std::int64_t> shape(static_cast<std::size_t>(v.dim()), 1);
  shape[static_cast<std::size_t>(dim)] = v.size(dim);
  const at::ScalarType type = at::isReducedFloatingType(v.scalar_type()) ? at::kFloat : v.scalar_type();
  const at::Tensor output = at::zeros_like(v), norms = at::zeros(shape, v.options().dtype(type));
  Parts parts;
  add(parts.given, "v", v), add(parts.given, "g", g);
  parts.results = {{"output", output}, {"norms", norms}};
  parts.run = [=] {
    norms.copy_(at::linalg_vector_norm(v.to(type), 2, others, true));
    output.copy_(at::mul(v.to(type), at::div(g.to(type).view(shape), norms)));
  };
  return parts;
}

// Updates.

/// In the format that the kernel computes in.
at::Tensor up(const at::Tensor& t) {
  return at::isReducedFloatingType(t.scalar_type()) ? t.to(at::kFloat) : t;
}

/// The inputs of every update, read before anything is recorded.
struct Settings {
  explicit Settings(const Given& given)
      : weight(given.own("self")),
        gradient(given.own("grads")),
        scale(given.tensor("grad_scale")),
        rate(given.number("lr", 0)),
        decay(given.number("weight_decay", 0)),
        maximize(given.flag("maximize")) {}
  at::Tensor weight, gradient, scale;
  double rate, decay;
  bool maximize;
};

/// Weight and gradient as the kernel uses them.
struct Update {
  Update(const Settings& s, bool decoupled) : weight(up(s.weight)), gradient(up(s.gradient)) {
    if (s.scale.defined()) gradient = at::div(gradient, s.scale);
    if (s.maximize) gradient = at::neg(gradient);
    if (s.decay != 0 && decoupled) weight = at::mul(weight, 1 - s.rate * s.decay);
    if (s.decay != 0 && !decoupled) gradient = at::add(gradient, weight, s.decay);
  }
  at::Tensor weight, gradient;
};

Parts adam(const Given& given, bool decoupled) {
  const Settings s(given);
  const at::Tensor mean = given.own("exp_avgs"), squares = given.own("exp_avg_sqs"),
                   largest = given.own("max_exp_avg_sqs");
  const bool amsgrad = given.flag("amsgrad") && largest.defined();
  const double step = given.number("state_steps", 1), b1 = given.number("beta1", 0.9),
               b2 = given.number("beta2", 0.999), eps = given.number("eps", 0);
  Parts parts;
  add(parts.given, "grads", s.gradient);
  add(parts.results, "self", s.weight), add(parts.results, "exp_avgs", mean);
  add(parts.results, "exp_avg_sqs", squares);
  if (amsgrad) add(parts.results, "max_exp_avg_sqs", largest);
  parts.run = [=] {
    const Update u(s, decoupled);
    mean.copy_(at::lerp(up(mean), u.gradient, 1 - b1));
    squares.copy_(at::addcmul(at::mul(up(squares), b2), u.gradient, u.gradient, 1 - b2));
    if (amsgrad) largest.copy_(at::maximum(up(largest), up(squares)));
    const at::Tensor root =
        at::div(at::sqrt(up(amsgrad ? largest : squares)), std::sqrt(1 - std::pow(b2, step)));
    s.weight.copy_(at::addcdiv(u.weight, up(mean), at::add(root, eps), -s.rate / (1 - std::pow(b1, step))));
  };
  return parts;
}

Parts adagrad(const Given& given) {
  const Settings s(given);
  const at::Tensor sum = given.own("state_sums");
  const double decay = given.number("lr_decay", 0), eps = given.number("eps", 0),
               step = given.number("state_steps", 1);
  Parts parts;
  add(parts.given, "grads", s.gradient);
  add(parts.results, "self", s.weight), add(parts.results, "state_sums", sum);
  parts.run = [=] {
    const Update u(s, /*decoupled=*/false);
    sum.copy_(at::addcmul(up(sum), u.gradient, u.gradient));
    s.weight.copy_(at::addcdiv(u.weight, u.gradient, at::add(at::sqrt(up(sum)), eps),
                               -s.rate / (1 + (step - 1) * decay)));
  };
  return parts;
}

Parts sgd(const Given& given) {
  const Settings s(given);
  const at::Tensor momentum = given.own("momentum_buffer_list");
  const double share = given.number("momentum", 0), dampening = given.number("dampening", 0);
  const bool first = given.flag("is_first_step"), nesterov = given.flag("nesterov");
  Parts parts;
  add(parts.given, "grads", s.gradient);
  add(parts.results, "self", s.weight), add(parts.results, "momentum_buffer_list", momentum);
  parts.run = [=] {
    Update u(s, /*decoupled=*/false);
    if (share != 0 && momentum.defined()) {
      momentum.copy_(first ? u.gradient : at::add(at::mul(up(momentum), share), u.gradient, 1 - dampening));
      u.gradient = nesterov ? at::add(u.gradient, up(momentum), share) : up(momentum);
    }
    s.weight.copy_(at::sub(u.weight, at::mul(u.gradient, s.rate)));
  };
  return parts;
}

}  // namespace

bool opens(std::string_view name) {
  static const std::set<std::string_view> others = {"_scaled_mm",
                                                    "_fused_adam",
                                                    "_fused_adamw",
                                                    "_fused_sgd",
                                                    "_fused_adagrad",
                                                    "native_layer_norm",
                                                    "native_group_norm",
                                                    "native_batch_norm",
                                                    "_native_batch_norm_legit",
                                                    "_batch_norm_with_update",
                                                    "_fused_rms_norm",
                                                    "_weight_norm_interface"};
  if (name.starts_with("_scaled_dot_product_"))
    return name.find("attention_math") == std::string_view::npos &&
           name.find("overrideable") == std::string_view::npos;
  return others.count(name) > 0;
}

std::optional<Parts> parts_of(const Case& c) {
  if (!c.op()) return std::nullopt;
  const std::string name = plain_name(*c.op());
  const Given given(c);
  if (!opens(name)) return std::nullopt;
  if (name.starts_with("_scaled_dot_product_")) {
    if (!given.tensor("query").defined() || given.number("dropout_p", 0) != 0) return std::nullopt;
    return name.ends_with("_backward") ? attention_backward(given) : attention(given);
  }
  if (name == "_scaled_mm") return scaled_product(c, given);
  if (name == "_weight_norm_interface") return normed_weight(given);
  if (name.ends_with("_norm") || name.find("batch_norm") != std::string::npos)
    return normalisation(c, given, name);
  if (!given.tensor("self").defined() || !given.tensor("grads").defined()) return std::nullopt;
  if (name == "_fused_adam" || name == "_fused_adamw") return adam(given, name == "_fused_adamw");
  if (name == "_fused_sgd") return sgd(given);
  if (name == "_fused_adagrad") return adagrad(given);
  return std::nullopt;
}

}  // namespace nanquest
