// Which ops are the optimizer's, in real steps with hand-written optimizers.
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>

#include "probe/trace/phases.h"
#include "tests/record/programs.h"

namespace nanquest {
namespace {

using testing::leaf;
using testing::TinyNet;

/// Names of the ops in a phase, without views.
std::multiset<std::string> ops_in(const SnapshotDoc& doc, Phase phase) {
  std::multiset<std::string> names;
  for (const OpRow& op : doc.ops)
    if (op.phase == phase && !(op.flags & kOpViewOnly)) names.insert(op.name);
  return names;
}

/// The net's step, then `update`, which is not marked as an update.
SnapshotDoc trained(
    const std::function<void(TinyNet&)>& update,
    const std::function<at::Tensor(TinyNet&)>& step = [](TinyNet& net) { return net.step(); }) {
  TinyNet net;
  SnapshotDoc doc = record_step(net.state(), [&] {
                      const at::Tensor loss = step(net);
                      update(net);
                      return loss;
                    }).doc;
  const SnapshotDoc once = doc;
  EXPECT_FALSE(settle_phases(doc)) << "a second time changes nothing";
  return once;
}

using Names = std::multiset<std::string>;

TEST(Phases, AnSgdUpdateByHand) {
  const SnapshotDoc doc = trained([](TinyNet& net) {
    for (at::Tensor* p : {&net.w1, &net.b1, &net.w2}) p->data().sub_(p->grad() * 0.1);
  });
  EXPECT_EQ(ops_in(doc, Phase::optimizer),
            (Names{"aten::mul", "aten::mul", "aten::mul", "aten::sub_", "aten::sub_", "aten::sub_"}));
  EXPECT_FALSE(ops_in(doc, Phase::forward).empty());
}

TEST(Phases, AnAdamByHandWithNewMoments) {
  const SnapshotDoc doc = trained([](TinyNet& net) {
    const at::NoGradGuard no_grad;
    const at::Tensor m = at::zeros_like(net.w1), v = at::zeros_like(net.w1), t = at::ones({});
    m.mul_(0.9).add_(net.w1.grad(), 0.1);
    v.mul_(0.999).addcmul_(net.w1.grad(), net.w1.grad(), 0.001);
    const at::Tensor correction = 1 - at::pow(at::full({}, 0.9), t);
    net.w1.addcdiv_(m / correction, v.sqrt().add_(1e-8), -0.01);
  });
  for (const char* name : {"aten::addcdiv_", "aten::addcmul_", "aten::sqrt", "aten::add_", "aten::div",
                           "aten::pow", "aten::ones", "aten::mul_"})
    EXPECT_GE(ops_in(doc, Phase::optimizer).count(name), 1u) << name;
  EXPECT_EQ(ops_in(doc, Phase::forward).count("aten::sqrt"), 0u);
}

TEST(Phases, ForeachOpsOnLists) {
  const SnapshotDoc doc = trained([](TinyNet& net) {
    const at::NoGradGuard no_grad;
    const std::vector<at::Tensor> p{net.w1, net.w2}, g{net.w1.grad(), net.w2.grad()};
    const std::vector<at::Tensor> steps = at::_foreach_mul(g, 0.1);
    at::_foreach_sub_(p, steps);
  });
  EXPECT_EQ(ops_in(doc, Phase::optimizer), (Names{"aten::_foreach_mul", "aten::_foreach_sub_"}));
}

TEST(Phases, ClippingAndItsNorm) {
  const SnapshotDoc doc = trained([](TinyNet& net) {
    const at::Tensor norm = (net.w1.grad().square().sum() + net.w2.grad().square().sum()).sqrt();
    const at::Tensor factor = (1.0 / (norm + 1e-6)).clamp_max(1.0);
    for (at::Tensor* p : {&net.w1, &net.w2}) p->mutable_grad().mul_(factor);
  });
  for (const char* name : {"aten::sqrt", "aten::div_", "aten::mul_"})
    EXPECT_GE(ops_in(doc, Phase::optimizer).count(name), 1u) << name;
  EXPECT_EQ(ops_in(doc, Phase::forward).count("aten::sqrt"), 0u);
}

TEST(Phases, UnscalingByHandAndItsCheck) {
  const at::Tensor scale = at::full({}, 1024.f);
  const SnapshotDoc doc = trained(
      [&](TinyNet& net) {
        const at::Tensor inverse = scale.reciprocal();
        bool bad = false;
        for (at::Tensor* p : {&net.w1, &net.b1, &net.w2}) {
          p->mutable_grad().mul_(inverse);
          bad = bad || !at::isfinite(p->grad()).all().item<bool>();
        }
        if (!bad) net.w1.data().sub_(net.w1.grad(), 0.1);
      },
      [&](TinyNet& net) {
        const at::Tensor loss = net.loss();
        (loss * scale).backward();
        return loss;
      });
  EXPECT_EQ(ops_in(doc, Phase::optimizer).count("aten::mul_"), 3u);
  EXPECT_EQ(ops_in(doc, Phase::optimizer).count("aten::reciprocal"), 1u);
  EXPECT_EQ(ops_in(doc, Phase::optimizer).count("aten::sub_"), 1u);
  EXPECT_GE(ops_in(doc, Phase::forward).count("aten::mul"), 1u) << "the loss is scaled in the forward pass";
}

TEST(Phases, NoiseThatGoesIntoGradients) {
  const SnapshotDoc doc = trained([](TinyNet& net) {
    const at::Tensor noise = at::randn({16, 8}) * 0.01;
    net.w1.mutable_grad().add_(noise);
    net.w1.data().sub_(net.w1.grad(), 0.1);
  });
  EXPECT_EQ(ops_in(doc, Phase::optimizer).count("aten::randn"), 1u);
  EXPECT_EQ(ops_in(doc, Phase::optimizer).count("aten::mul"), 1u);
}

TEST(Phases, AveragesOfWeights) {
  for (const bool in_place : {true, false}) {
    at::Tensor average = at::zeros({16, 8});
    const SnapshotDoc doc = trained([&](TinyNet& net) {
      const at::NoGradGuard no_grad;
      net.w1.sub_(net.w1.grad(), 0.1);
      if (in_place)
        average.mul_(0.9).add_(net.w1, 0.1);
      else
        average = average * 0.9 + net.w1 * 0.1;
    });
    const Names names = ops_in(doc, Phase::optimizer);
    EXPECT_EQ(names.count(in_place ? "aten::mul_" : "aten::mul"), in_place ? 1u : 2u);
    EXPECT_EQ(names.count(in_place ? "aten::add_" : "aten::add"), 1u);
  }
}

TEST(Phases, MetricsAndEvaluationAreForward) {
  const at::Tensor other = at::randn({3, 8});
  const SnapshotDoc doc = trained([&](TinyNet& net) {
    const at::NoGradGuard no_grad;
    const at::Tensor hits = at::argmax(at::linear(net.x, net.w1), 1);
    (void)hits.to(at::kFloat).mean().item<float>();
    net.w1.sub_(net.w1.grad(), 0.1);
    (void)at::tanh(at::linear(other, net.w1)).mean().item<float>();
  });
  EXPECT_EQ(ops_in(doc, Phase::optimizer), Names{"aten::sub_"});
  for (const char* name : {"aten::argmax", "aten::tanh"})
    EXPECT_EQ(ops_in(doc, Phase::forward).count(name), 1u) << name;
}

TEST(Phases, TheNextMicroBatchIsForwardAndAccumulationByHandIsNot) {
  const SnapshotDoc doc = trained([](TinyNet& net) { net.w1.data().sub_(net.w1.grad(), 0.1); },
                                  [](TinyNet& net) {
                                    at::Tensor sum = at::zeros({16, 8});
                                    at::Tensor loss;
                                    for (int i = 0; i < 2; ++i) {
                                      net.clear();
                                      loss = net.step();
                                      sum.add_(net.w1.grad());
                                    }
                                    net.w1.mutable_grad().copy_(sum);
                                    return loss;
                                  });
  const Names update = ops_in(doc, Phase::optimizer), forward = ops_in(doc, Phase::forward);
  EXPECT_EQ(update.count("aten::add_"), 2u);
  EXPECT_EQ(update.count("aten::copy_"), 1u);
  EXPECT_EQ(forward.count("aten::relu"), 2u);
  EXPECT_EQ(update.count("aten::relu"), 0u);
}

TEST(Phases, AGradientPenaltyAndAnAdversarialInputAreForward) {
  at::Tensor x = at::randn({6, 8});
  const SnapshotDoc doc = trained([](TinyNet& net) { net.w1.data().sub_(net.w1.grad(), 0.1); },
                                  [&](TinyNet& net) {
                                    const at::Tensor input = x.detach().clone().set_requires_grad(true);
                                    at::tanh(at::linear(input, net.w1)).sum().backward();
                                    const at::Tensor attacked = input.detach() + input.grad().sign() * 0.1;
                                    net.clear();
                                    const at::Tensor loss = at::tanh(at::linear(attacked, net.w1)).sum();
                                    loss.backward();
                                    return loss;
                                  });
  EXPECT_EQ(ops_in(doc, Phase::optimizer), Names{"aten::sub_"});
  EXPECT_EQ(ops_in(doc, Phase::forward).count("aten::sign"), 1u);
}

TEST(Phases, AnUpdateOnGradientsThatWereThereBefore) {
  TinyNet net;
  (void)net.step();
  const SnapshotDoc doc = record_step(net.state(), [&] {
                            net.w1.data().sub_(net.w1.grad() * 0.1);
                            return at::Tensor();
                          }).doc;
  EXPECT_EQ(ops_in(doc, Phase::optimizer), (Names{"aten::mul", "aten::sub_"}));
}

}  // namespace
}  // namespace nanquest
