// Blame goes into a fused op: its parts do what the kernel does, and the one that went wrong is named.
#include <ATen/ATen.h>

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
