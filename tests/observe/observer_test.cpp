#include "probe/observe/observer.h"

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <thread>

namespace nanquest {
namespace {

struct Seen {
  std::string name;
  NodeContext node;
  std::size_t inputs, outputs;
};

/// Stores what it is shown; runs ATen ops itself to prove that those are not observed.
struct Collector : OpSink {
  struct Frame : OpFrame {
    Seen seen;
  };
  std::unique_ptr<OpFrame> on_start(const OpTraits& op, c10::ArrayRef<const c10::IValue> inputs) override {
    auto frame = std::make_unique<Frame>();
    frame->seen = {op.name, current_node(), inputs.size(), 0};
    (void)at::ones({2}).sum();
    if (op.name == fail_on) throw std::runtime_error("sink failed");
    return frame;
  }
  void on_end(const OpTraits&, OpFrame& frame, c10::ArrayRef<const c10::IValue> outputs) override {
    auto& seen = static_cast<Frame&>(frame).seen;
    seen.outputs = outputs.size();
    all.push_back(seen);
  }
  void on_error(const char* what) override { errors.emplace_back(what); }

  std::vector<std::string> names() const {
    std::vector<std::string> n;
    for (const Seen& s : all) n.push_back(s.name);
    return n;
  }
  bool has(const std::string& name) const {
    const auto n = names();
    return std::find(n.begin(), n.end(), name) != n.end();
  }
  std::vector<Seen> all;
  std::vector<std::string> errors;
  std::string fail_on;
};

TEST(Observer, CompositesDescendAndKernelsAreShownOnce) {
  Collector sink;
  {
    const auto session = ObserverSession::start(sink);
    ASSERT_TRUE(session.ok());
    (void)at::linear(at::ones({2, 3}), at::ones({4, 3}), at::ones({4}));
  }
  EXPECT_FALSE(sink.has("aten::linear"));
  EXPECT_TRUE(sink.has("aten::addmm"));
  // Ops that addmm and ones call internally are not shown.
  EXPECT_FALSE(sink.has("aten::expand"));
}

TEST(Observer, AutocastShowsTheCastsAndTheReducedOp) {
  Collector sink;
  const at::Tensor a = at::ones({4, 4}), b = at::ones({4, 4});
  {
    const auto session = ObserverSession::start(sink);
    at::autocast::set_autocast_enabled(at::kCPU, true);
    at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
    (void)at::mm(a, b);
    at::autocast::set_autocast_enabled(at::kCPU, false);
    at::autocast::clear_cache();
  }
  EXPECT_EQ(sink.names(), (std::vector<std::string>{"aten::_to_copy", "aten::_to_copy", "aten::mm"}));
}

TEST(Observer, BackwardOpsKnowTheirNode) {
  Collector sink;
  at::Tensor x = at::ones({3}).set_requires_grad(true);
  {
    const auto session = ObserverSession::start(sink);
    at::Tensor y = x.exp();
    (y.sum() + x.sum()).backward();
  }
  bool node_seen = false, accumulation_seen = false;
  for (const Seen& s : sink.all) {
    if (s.node.name == "ExpBackward0") node_seen = node_seen || s.node.sequence >= 0;
    if (s.node.name.rfind("accumulation after ", 0) == 0) accumulation_seen = true;
  }
  EXPECT_TRUE(node_seen);
  EXPECT_TRUE(accumulation_seen) << "x has two users: their gradients are added between nodes";
}

TEST(Observer, OpsOfTheSinkAreNotObserved) {
  Collector sink;
  {
    const auto session = ObserverSession::start(sink);
    (void)at::zeros({2}).exp();
  }
  EXPECT_FALSE(sink.has("aten::sum"));
  EXPECT_TRUE(sink.has("aten::exp"));
}

TEST(Observer, AFailingSinkNeverReachesTheProgram) {
  Collector sink;
  sink.fail_on = "aten::exp";
  at::Tensor y;
  {
    const auto session = ObserverSession::start(sink);
    y = at::zeros({2}).exp().neg();
  }
  EXPECT_TRUE(at::equal(y, at::full({2}, -1.f)));
  EXPECT_EQ(sink.errors, std::vector<std::string>{"sink failed"});
  EXPECT_TRUE(sink.has("aten::neg"));
}

TEST(Observer, AThrowingOpEndsWithoutOutputs) {
  Collector sink;
  {
    const auto session = ObserverSession::start(sink);
    EXPECT_THROW((void)at::ones({2, 3}).mm(at::ones({2, 3})), c10::Error);
    (void)at::ones({2}).neg();
  }
  const auto mm =
      std::find_if(sink.all.begin(), sink.all.end(), [](const Seen& s) { return s.name == "aten::mm"; });
  ASSERT_NE(mm, sink.all.end());
  EXPECT_EQ(mm->outputs, 0u);
  EXPECT_TRUE(sink.has("aten::neg")) << "the thread's depth is right again";
}

TEST(Observer, VoidInPlaceAndListOps) {
  Collector sink;
  std::vector<at::Tensor> list = {at::ones({2}), at::ones({3})};
  {
    const auto session = ObserverSession::start(sink);
    at::_foreach_mul_(list, 2.0);
    (void)list[0].add_(1);
    (void)at::cat(list);
  }
  for (const Seen& s : sink.all) {
    if (s.name == "aten::_foreach_mul_") {
      EXPECT_EQ(s.outputs, 0u);
    }
    if (s.name == "aten::add_" || s.name == "aten::cat") {
      EXPECT_EQ(s.outputs, 1u);
    }
  }
  EXPECT_TRUE(sink.has("aten::_foreach_mul_"));
}

TEST(Observer, WhoRestsIsToldNothingUntilItWakes) {
  Collector sink;
  auto session = ObserverSession::start(sink);
  ASSERT_TRUE(session.ok());
  const auto x = at::ones({2}).set_requires_grad(true);
  (void)x.exp();
  session->rest();
  session->rest();
  EXPECT_FALSE(at::getStepCallbacksUnlessEmpty(at::RecordScope::FUNCTION)
                   .has_value());  // no op has the cost of a callback
  x.log().sum().backward();
  std::thread([&] { session->wake(); }).join();  // another thread
  (void)x.tan();
  session->wake();
  EXPECT_TRUE(at::getStepCallbacksUnlessEmpty(at::RecordScope::FUNCTION).has_value());
  x.sin().sum().backward();
  EXPECT_TRUE(sink.has("aten::exp"));
  EXPECT_FALSE(sink.has("aten::log"));
  EXPECT_FALSE(sink.has("aten::tan"));
  EXPECT_TRUE(sink.has("aten::sin"));
  EXPECT_TRUE(sink.has("aten::cos"));  // the derivative: nodes are reported again too
  const auto derivative =
      std::find_if(sink.all.begin(), sink.all.end(), [](const Seen& s) { return s.name == "aten::cos"; });
  EXPECT_TRUE(derivative->node.in_backward);
}

TEST(Observer, NothingIsSeenAfterTheSession) {
  Collector sink;
  { const auto session = ObserverSession::start(sink); }
  (void)at::ones({2}).exp();
  EXPECT_TRUE(sink.all.empty());
  EXPECT_TRUE(ObserverSession::start(sink).ok());
}

}  // namespace
}  // namespace nanquest
