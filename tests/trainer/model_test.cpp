// The model and the optimizer compared with PyTorch's own: same weights, same bytes, same numbers.
#include <ATen/ATen.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "probe/nanquest.h"
#include "tests/trainer/helpers.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/model/gpt.h"
#include "trainer/optim/adamw.h"
#include "trainer/text/next_token.h"

namespace nanquest::trainer {
namespace {

struct Case {
  const char* name;
  GptConfig config;
};

constexpr double kLr = 3e-3;

nlohmann::json as_json(const GptConfig& c) {
  const char* activations[] = {"gelu", "relu2", "swiglu"};
  return {{"depth", c.depth},
          {"width", c.width},
          {"heads", c.heads},
          {"context", c.context},
          {"hidden", c.hidden_width()},
          {"norm", c.norm == NormPlace::pre ? "pre" : "post"},
          {"qk_norm", c.qk_norm},
          {"activation", activations[static_cast<int>(c.activation)]},
          {"tied", c.tied_head},
          {"init_std", c.init_std},
          {"lr", kLr}};
}

double relative_difference(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor x = a.to(at::kDouble), y = b.to(at::kDouble);
  return ((x - y).norm() / (y.norm() + 1e-30)).item<double>();
}

GptConfig tiny() {
  return {.depth = 2, .width = 32, .heads = 4, .context = 16, .init_std = 0.05};
}
GptConfig with(void (*change)(GptConfig&)) {
  GptConfig c = tiny();
  change(c);
  return c;
}

std::vector<Case> cases() {
  return {{"gelu_tied", tiny()},
          {"relu2_untied", with([](GptConfig& c) {
             c.activation = Activation::relu2;
             c.tied_head = false;
           })},
          {"swiglu_qknorm", with([](GptConfig& c) {
             c.activation = Activation::swiglu;
             c.qk_norm = true;
           })},
          {"written", with([](GptConfig& c) { c.attention = AttentionForm::written; })},
          {"postnorm", with([](GptConfig& c) { c.norm = NormPlace::post; })}};
}

void compare_gradients(const Model& model, const SafetensorsFile& expected) {
  for (const auto& [name, p] : model.parameters()) {
    const at::Tensor theirs = expected.find("grad." + name);
    ASSERT_TRUE(theirs.defined()) << name;
    EXPECT_LT(relative_difference(p.grad(), theirs), 2e-4) << name;
    EXPECT_NEAR(p.grad().norm().item<double>() / theirs.norm().item<double>(), 1.0, 1e-4) << name;
  }
}

void compare(Model& model, const GptConfig& config, const at::Tensor& windows,
             const SafetensorsFile& expected) {
  const auto optimizer = std::move(
      *make_adamw(model.parameters(), {.beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8, .weight_decay = 0.1}));
  const auto probe = std::move(*Probe::create({.level = Level::off}));
  for (const auto& [name, p] : model.parameters()) probe->watch_parameter(name, p);
  for (std::int64_t step = 0; step < 10; ++step) {
    const at::Tensor x = windows[step].narrow(1, 0, config.context),
                     y = windows[step].narrow(1, 1, config.context);
    at::Tensor logits;
    const StepReport report = probe->step({.step = step}, [&] {
      logits = model.forward(x, true);
      at::Tensor loss = next_token_loss(logits, y) / static_cast<double>(count_targets(y));
      loss.backward();
      return loss;
    });
    ASSERT_TRUE(report.ok());
    if (step == 0) {
      EXPECT_LT(relative_difference(logits, expected.find("logits")), 1e-5);
      EXPECT_NEAR(report.loss, expected.find("loss").item<double>(), 1e-5);
      compare_gradients(model, expected);
    }
    EXPECT_NEAR(report.loss, expected.find("losses")[step].item<double>(), 2e-4 * report.loss)
        << "step " << step;
    optimizer->scale_gradients(report.clip_coefficient(1.0));
    optimizer->step(kLr);
  }
}

// One start of Python for all shapes: importing torch takes longer than everything else here.
TEST(AgainstPyTorch, LogitsLossGradientsAndTenLossesOfEveryShape) {
  const test::Folder folder;
  std::string command =
      "PYTHONDONTWRITEBYTECODE=1 " NANQUEST_TEST_PYTHON " " NANQUEST_TEST_SOURCES "/reference.py";
  std::vector<std::unique_ptr<Model>> models;
  std::vector<at::Tensor> windows;
  at::manual_seed(3);
  for (const Case& c : cases()) {
    models.push_back(std::move(*make_gpt(c.config, 7, at::kCPU)));
    windows.push_back(at::randint(0, 256, {10, 4, c.config.context + 1}, at::kLong));
    NamedTensors given{{"windows", windows.back()}};
    for (const auto& [name, p] : models.back()->parameters()) given.emplace_back("model." + name, p);
    const std::string path = folder / c.name;
    ASSERT_TRUE(write_safetensors(path + ".in.safetensors", given, {{"config", as_json(c.config).dump()}}));
    command += " '" + path + "'";
  }
  const auto python = test::run(command, folder);
  ASSERT_EQ(python.code, 0) << python.err;
  for (std::size_t i = 0; i < cases().size(); ++i) {
    const Case c = cases()[i];
    SCOPED_TRACE(c.name);
    auto expected = read_safetensors((folder / c.name) + ".out.safetensors");
    ASSERT_TRUE(expected) << expected.error().text();
    compare(*models[i], c.config, windows[i], *expected);
  }
}

TEST(Gpt, SameSeedSameWeightsWhateverTheGlobalGenerator) {
  at::manual_seed(1);
  auto a = make_gpt(tiny(), 5, at::kCPU);
  at::manual_seed(2);
  auto b = make_gpt(tiny(), 5, at::kCPU);
  auto c = make_gpt(tiny(), 6, at::kCPU);
  ASSERT_TRUE(a && b && c);
  const auto pa = (*a)->parameters(), pb = (*b)->parameters(), pc = (*c)->parameters();
  for (std::size_t i = 0; i < pa.size(); ++i)
    EXPECT_TRUE(at::equal(pa[i].second, pb[i].second)) << pa[i].first;
  EXPECT_FALSE(at::equal(pa[0].second, pc[0].second));
}

TEST(Gpt, NoLookingAhead) {
  auto model = make_gpt(tiny(), 5, at::kCPU);
  ASSERT_TRUE(model);
  at::Tensor tokens = at::randint(0, 256, {1, 16}, at::kLong);
  const at::Tensor before = (*model)->forward(tokens, false).detach().clone();
  tokens[0][10].fill_((tokens[0][10].item<std::int64_t>() + 1) % 256);
  const at::Tensor after = (*model)->forward(tokens, false);
  EXPECT_TRUE(at::equal(before.narrow(1, 0, 10), after.narrow(1, 0, 10)));
  EXPECT_FALSE(at::equal(before.narrow(1, 10, 6), after.narrow(1, 10, 6)));
}

TEST(Gpt, DropoutOnlyInTraining) {
  GptConfig c = tiny();
  c.dropout = 0.5;
  auto model = make_gpt(c, 5, at::kCPU);
  ASSERT_TRUE(model);
  const at::Tensor tokens = at::randint(0, 256, {2, 16}, at::kLong);
  EXPECT_TRUE(at::equal((*model)->forward(tokens, false), (*model)->forward(tokens, false)));
  EXPECT_FALSE(at::equal((*model)->forward(tokens, true), (*model)->forward(tokens, true)));
}

TEST(Gpt, RefusesSettingsThatMakeNoSense) {
  EXPECT_EQ(check(GptConfig{.width = 30, .heads = 4}).error().code, ErrorCode::usage);
  EXPECT_NE(check(GptConfig{.width = 30, .heads = 4}).error().message.find("30"), std::string::npos);
  EXPECT_FALSE(check(GptConfig{.depth = 0}));
  EXPECT_FALSE(check(GptConfig{.init_std = std::nan("")}));
  EXPECT_FALSE(check(GptConfig{.dropout = 1.0}));
  EXPECT_TRUE(check(GptConfig{}));
}

}  // namespace
}  // namespace nanquest::trainer
