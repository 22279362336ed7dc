// Blame goes into a fused op: its parts do what the kernel does, and the one that went wrong is named.
#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <functional>
#include <map>
#include <regex>
#include <set>

#include "replay/case/values.h"
#include "replay/cause/parts.h"
#include "replay/verdict/sentences.h"
#include "tests/replay/diagnose/incident.h"
#include "tests/replay/diagnose/sample.h"

namespace nanquest {
namespace {

using testing::Incident;
using testing::leaf;

/// Every result of the parts is what the kernel wrote, where that is finite.
void expect_same(const Parts& parts, const std::vector<at::Tensor>& by_kernel) {
  parts.run();
  ASSERT_LE(parts.results.size(), by_kernel.size());
  for (std::size_t i = 0; i < parts.results.size(); ++i) {
    const auto& [name, result] = parts.results[i];
    ASSERT_EQ(result.sizes(), by_kernel[i].sizes()) << name;
    EXPECT_TRUE(at::allclose(result.to(at::kDouble), by_kernel[i].to(at::kDouble), 1e-3, 1e-6, true))
        << name << "\n"
        << result << "\n"
        << by_kernel[i];
  }
}

/// An update of two weights by a fused kernel; the gradient of the second overflows its square.
Incident update(const char* which, at::ScalarType type) {
  const double huge = type == at::kHalf ? 3e4 : 1e25;
  const at::Tensor good = at::linspace(-1, 1, 6).to(type), bad = at::linspace(1, 2, 4).to(type);
  const at::Tensor g = at::linspace(0.1, 0.5, 6).to(type), h = at::full({4}, huge, type);
  const at::Tensor m = at::full({6}, 0.01).to(type), v = at::full({6}, 0.04).to(type),
                   m2 = at::full({4}, 0.01).to(type), v2 = at::full({4}, 0.04).to(type);
  const at::Tensor step = at::full({}, 3, at::kFloat), step2 = step.clone();
  StepState state;
  state.parameters = {{"good", good}, {"bad", bad}};
  state.optimizer = {{"m", m}, {"v", v}, {"m2", m2}, {"v2", v2}, {"step", step}, {"step2", step2}};
  return Incident(state, [=, name = std::string(which)] {
    const PhaseScope phase(Phase::optimizer);
    const at::Tensor scaled = at::mul(h, 1);
    if (name == "adamw")
      at::_fused_adamw_({good, bad}, {g, scaled}, {m, m2}, {v, v2}, {}, {step, step2}, 0.1, 0.9, 0.99, 0.1,
                        1e-6, false, false);
    else
      at::_fused_sgd_({good, bad}, {g, at::mul(scaled, 2)}, {m, m2}, 0.1, 0.9,
                      type == at::kHalf ? 60000. : 1e20, 0.2, true, false, false);
    return at::Tensor();
  });
}

TEST(Inside, TheSquaresOfAFusedAdamAreNamed) {
  const Incident incident = update("adamw", at::kFloat);
  const Verdict v = incident.verdict();
  EXPECT_EQ(v.culprit.op, "aten::_fused_adamw_");
  EXPECT_NE(v.explanation.find("aten::addcmul"), std::string::npos) << v.explanation;
  EXPECT_NE(v.cause, Label::unknown) << v.explanation;
}

TEST(Inside, PartsOfAnUpdateDoWhatTheKernelDoes) {
  for (const char* name : {"adamw", "sgd"}) {
    const Incident incident = update(name, at::kFloat);
    Case c = incident.make();
    ASSERT_NE(c.op(), nullptr);
    c.focus(0);
    const auto parts = parts_of(c);
    ASSERT_TRUE(parts.has_value()) << c.op()->name;
    parts->run();
    // The same update by the kernel, in fp64.
    const auto value = [&](const char* argument_name) {
      return wide(tensor_of(argument(c, c.op_index(), argument_name))).clone();
    };
    const bool adam = std::string(name) == "adamw";
    at::Tensor w = value("self"), g = value("grads"), m = value(adam ? "exp_avgs" : "momentum_buffer_list");
    if (adam) {
      at::Tensor squares = value("exp_avg_sqs");
      at::_fused_adamw_({w}, {g}, {m}, {squares}, {}, {at::full({}, 3, at::kFloat)}, 0.1, 0.9, 0.99, 0.1,
                        1e-6, false, false);
      expect_same(*parts_of(c), {w, m, squares});
    } else {
      at::_fused_sgd_({w}, {g}, {m}, 0.1, 0.9, 1e20, 0.2, true, false, false);
      expect_same(*parts_of(c), {w, m});
    }
  }
}

/// Why a fused operator of PyTorch's is not opened.
const std::map<std::string, std::string>& not_opened() {
  static const std::string inner = "its callers are on record, which are opened",
                           device =
                               "of a device's library, whose parts "
                               "are not documented",
                           one = "one formula of one element or row: it has no parts to tell apart",
                           draws = "draws random numbers", derivative = "its derivative is one formula",
                           frozen = "for inference: nothing is trained through it",
                           quantised = "of quantised numbers";
  static const std::map<std::string, std::string> names = {
      {"_addmm_activation", frozen},
      {"_cudnn_attention_backward", inner},
      {"_cudnn_attention_forward", inner},
      {"_cudnn_attention_forward_no_dropout_inplace", inner},
      {"_efficient_attention_backward", inner},
      {"_efficient_attention_forward", inner},
      {"_flash_attention_backward", inner},
      {"_flash_attention_forward", inner},
      {"_flash_attention_forward_no_dropout_inplace", inner},
      {"_fused_dropout", draws},
      {"_fused_moving_avg_obs_fq_helper", quantised},
      {"_fused_moving_avg_obs_fq_helper_functional", quantised},
      {"fused_moving_avg_obs_fake_quant", quantised},
      {"_fused_rms_norm_backward", derivative},
      {"_fused_sdp_choice", "gives no values"},
      {"_native_multi_head_attention", frozen},
      {"_transformer_encoder_layer_fwd", frozen},
      {"_triton_multi_head_attention", frozen},
      {"_scaled_dot_product_attention_math", "composite: its parts are on record"},
      {"_scaled_dot_product_attention_math_for_mps", device},
      {"_scaled_dot_product_fused_attention_overrideable", device},
      {"_scaled_dot_product_fused_attention_overrideable_backward", device},
      {"_scaled_mm_v2", "its recipes of block scales are not plain products"},
      {"_thnn_fused_gru_cell", device},
      {"_thnn_fused_gru_cell_backward", device},
      {"_thnn_fused_lstm_cell", device},
      {"_thnn_fused_lstm_cell_backward", device},
      {"_thnn_fused_lstm_cell_backward_impl", device},
      {"native_batch_norm_backward", derivative},
      {"native_group_norm_backward", derivative},
      {"native_layer_norm_backward", derivative},
      {"batch_norm_backward", derivative},
      {"_native_batch_norm_legit_functional", "made by functionalization, never run"},
      {"_batch_norm_with_update_functional", "made by functionalization, never run"},
      {"_native_batch_norm_legit_no_training", one},
      {"_batch_norm_no_update", one},
      {"mkldnn_rnn_layer", device},
      {"mkldnn_rnn_layer_backward", device},
      {"_cudnn_rnn", device},
      {"_cudnn_rnn_backward", device},
      {"_cudnn_rnn_flatten_weight", "moves weights"},
      {"_use_cudnn_rnn_flatten_weight", "gives no values"},
      {"_weight_norm_interface_backward", derivative},
      {"_weight_norm", "composite: its parts are on record"},
      {"_weight_norm_differentiable_backward", "composite: its parts are on record"},
      {"miopen_rnn", device},
      {"miopen_rnn_backward", device},
      {"_lstm_mps", device},
      {"lstm_mps_backward", device}};
  return names;
}

TEST(Inside, EveryFusedOperatorIsOpenedOrKnownNotToBe) {
  const std::regex fused(
      "fused|_scaled_dot_product|flash_attention|efficient_attention|cudnn_attention|_rnn|lstm_mps|"
      "native_(layer|batch|group)_norm|_batch_norm_(with|no)_update|transformer_encoder|multi_head|"
      "scaled_mm|_addmm_activation|^batch_norm_backward$|weight_norm");
  std::set<std::string> seen;
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    std::string plain = name.name;
    if (!plain.starts_with("aten::")) continue;
    plain.erase(0, 6);
    if (plain.ends_with("_")) plain.pop_back();
    if (!std::regex_search(plain, fused) || plain.find("quantized") != std::string::npos ||
        plain.find("nested") != std::string::npos || !seen.insert(plain).second)
      continue;
    EXPECT_NE(opens(plain), not_opened().count(plain) > 0)
        << plain << ": open it, or say here why it is not opened";
  }
  EXPECT_GT(seen.size(), 40u);
}

TEST(Inside, PartsOfNormsDoWhatTheKernelsDo) {
  const at::Tensor w = leaf(at::randn({2, 4, 6})), scale = at::rand({6}), shift = at::rand({6}),
                   channels = at::rand({4});
  const at::Tensor x = at::randn({2, 4, 6});
  for (const auto& norm : std::vector<std::function<at::Tensor(const at::Tensor&)>>{
           [&](const at::Tensor& t) {
             return std::get<0>(at::native_layer_norm(t, {6}, scale, shift, 1e-5));
           },
           [&](const at::Tensor& t) {
             return std::get<0>(at::native_group_norm(t, channels, channels, 2, 4, 6, 2, 1e-5));
           },
           [&](const at::Tensor& t) {
             return std::get<0>(at::native_batch_norm(t, channels, channels, {}, {}, true, 0.1, 1e-5));
           }}) {
    w.mutable_grad() = at::Tensor();
    const Incident incident = testing::trained(w, [&] { return (norm(w + x) / 0.0).sum(); });
    SnapshotDoc doc = incident.make().doc();
    for (std::size_t i = 0; i < doc.ops.size(); ++i)
      if (doc.ops[i].name.find("norm") != std::string::npos && doc.ops[i].phase == Phase::forward)
        doc.culprit.op = static_cast<std::int32_t>(i);
    const Case c = incident.make().with(doc);
    const auto parts = parts_of(c);
    ASSERT_TRUE(parts.has_value()) << c.op()->name;
    expect_same(*parts, {c.values(c.op_index()).outputs[0]});
  }
}

/// A layer whose weight is a direction of norm 1 times a length; row 1 has no direction.
Incident weight_normed(std::int64_t dim) {
  at::manual_seed(3);
  at::Tensor v = at::randn({4, 3, 5}),
             g = at::rand({4, 3, 5}).sum(dim == 0 ? at::IntArrayRef{1, 2} : at::IntArrayRef{0, 1}, true);
  v.select(dim, 1).zero_(), g.select(dim, 1).zero_();
  const at::Tensor direction = leaf(v), length = leaf(g);
  StepState state;
  state.parameters = {{"direction", direction}, {"length", length}};
  return testing::backward_of(
      state, [=] { return std::get<0>(at::_weight_norm_interface(direction, length, dim)).square().mean(); });
}

TEST(Inside, TheDivisionOfAWeightNormIsNamed) {
  const Verdict v = weight_normed(0).verdict();
  EXPECT_EQ(v.culprit.op, "aten::_weight_norm_interface");
  EXPECT_EQ(v.cause, Label::div_zero) << v.explanation;
  EXPECT_NE(v.explanation.find("Inside it, run as its parts on the same values, aten::div"),
            std::string::npos)
      << v.explanation;
}

TEST(Inside, PartsOfAWeightNormDoWhatTheKernelDoes) {
  for (const std::int64_t dim : {0, 2}) {
    const Incident incident = weight_normed(dim);
    const Case c = incident.make();
    const auto parts = parts_of(c);
    ASSERT_TRUE(parts.has_value()) << c.op()->name;
    expect_same(*parts, c.values(c.op_index()).outputs);
  }
}

/// Attention whose queries and keys are `factor` times as large as they should be, and which is sent a
/// gradient of `sent`.
Incident attention(double factor, double sent) {
  at::manual_seed(1);
  const at::Tensor w = leaf(at::randn({2, 2, 16, 8}) * factor);
  const at::Tensor key = at::randn({2, 2, 16, 8}) * factor, value = at::randn({2, 2, 16, 8});
  return testing::trained(w, [=] {
    const at::Tensor out = at::scaled_dot_product_attention(w, key, value);
    return sent == 0 ? out.sum() : ((out - out.detach()) * sent + out * 1e-3).sum();
  });
}

void expect_product_inside(const Verdict& v, const std::string& op) {
  EXPECT_EQ(v.culprit.op, op) << v.explanation;
  EXPECT_EQ(v.cause, Label::fp16_overflow) << v.explanation;
  EXPECT_NE(v.explanation.find("Inside it, run as its parts on the same values, aten::"), std::string::npos)
      << v.explanation;
  EXPECT_NE(v.explanation.find("mm makes "), std::string::npos) << v.explanation;
  EXPECT_EQ(v.explanation.find("silent"), std::string::npos) << v.explanation;
}

TEST(Inside, TheProductOfAnAttentionIsNamed) {
  expect_product_inside(attention(1e20, 0).verdict(), "aten::_scaled_dot_product_flash_attention_for_cpu");
}

TEST(Inside, AndThatOfItsBackward) {
  expect_product_inside(attention(1, 3e38).verdict(),
                        "aten::_scaled_dot_product_flash_attention_for_cpu_backward");
}

/// A product of fp8 matrices with these scales, rounded to `type`, and what becomes of it.
Incident scaled(const at::Tensor& scale_a, const at::Tensor& scale_b, at::ScalarType type) {
  at::manual_seed(2);
  const at::Tensor w = leaf(at::randn({16, 16}));
  return testing::trained(w, [=] {
    const at::Tensor a = w.detach().to(at::kFloat8_e4m3fn), b = at::randn({16, 16}).to(at::kFloat8_e4m3fn);
    const at::Tensor product = at::_scaled_mm(a, b.t(), scale_a, scale_b, std::nullopt, std::nullopt, type);
    return (w * product.to(at::kFloat)).sum();
  });
}

TEST(Inside, APayloadIsJudgedTimesItsScale) {
  const Incident incident = scaled(at::full({}, 200.), at::full({}, 300.), at::kHalf);
  const Verdict v = incident.verdict();
  EXPECT_EQ(v.culprit.op, "aten::_scaled_mm");
  EXPECT_EQ(v.cause, Label::fp16_overflow) << v.explanation;
  // It has no kernel in another format, and is computed there by what it is documented to do.
  EXPECT_EQ(v.precision.verdict, PrecisionVerdict::curable) << precision_text(v);
  ASSERT_TRUE(v.fix.has_value());
  EXPECT_TRUE(v.fix->verified);
}

TEST(Inside, PartsOfAScaledProductDoWhatTheKernelDoes) {
  const Incident incident = scaled(at::full({}, 2.), at::full({}, INFINITY), at::kBFloat16);
  const Case c = incident.make();
  const auto parts = parts_of(c);
  ASSERT_TRUE(parts.has_value());
  expect_same(*parts, {c.values(c.op_index()).bad_output()});
  // With scales that are finite every element of it can be compared.
  const std::vector<c10::IValue> given = c.values(c.op_index()).arguments;
  const at::Tensor a = given[0].toTensor(), b = given[1].toTensor();
  const Incident whole = scaled(at::full({}, 200.), at::full({}, 300.), at::kHalf);
  const at::Tensor ours = [&] {
    const auto p = parts_of(whole.make());
    p->run();
    return p->results[0].second;
  }();
  const at::Tensor by_hand = at::matmul(a.to(at::kDouble) * 200., b.to(at::kDouble) * 300.).to(at::kHalf);
  EXPECT_TRUE(at::allclose(ours.to(at::kDouble), by_hand.to(at::kDouble), 2e-3, 1e-2));
}

TEST(Inside, AnOpThatIsNotFusedHasNoParts) {
  const at::Tensor w = leaf(at::zeros({4}));
  const Incident incident = testing::trained(w, [=] { return at::log(w).sum(); });
  EXPECT_FALSE(parts_of(incident.make()).has_value());
  EXPECT_EQ(incident.verdict().explanation.find("Inside it"), std::string::npos);
}

}  // namespace
}  // namespace nanquest
