/// Small training steps for the tests of the recorder.
#pragma once

#include <ATen/ATen.h>

#include <limits>

#include "probe/observe/module_scope.h"
#include "probe/record/record.h"

namespace nanquest::testing {

inline constexpr float kInf = std::numeric_limits<float>::infinity();
inline constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

inline at::Tensor leaf(at::Tensor t) {
  return t.set_requires_grad(true);
}

/// Two-layer net with dropout and cross entropy; parameters and batch are made from `seed`.
struct TinyNet {
  explicit TinyNet(int seed = 0) {
    at::manual_seed(static_cast<std::uint64_t>(seed));
    w1 = leaf(at::randn({16, 8}) * 0.3);
    b1 = leaf(at::zeros({16}));
    w2 = leaf(at::randn({4, 16}) * 0.3);
    x = at::randn({6, 8});
    y = at::randint(0, 4, {6}, at::kLong);
  }
  at::Tensor loss() const {
    at::Tensor h;
    {
      const ModuleScope scope("hidden", "Linear");
      h = at::dropout(at::relu(at::linear(x, w1, b1)), 0.25, true);
    }
    const ModuleScope scope("head", "Linear");
    return at::cross_entropy_loss(at::linear(h, w2), y);
  }
  at::Tensor step() const {
    at::Tensor l = loss();
    l.backward();
    return l;
  }
  void clear() {
    for (at::Tensor* p : {&w1, &b1, &w2}) p->mutable_grad().reset();
  }
  StepState state() const {
    StepState s;
    s.step = 7;
    s.parameters = {{"hidden.weight", w1}, {"hidden.bias", b1}, {"head.weight", w2}};
    s.batch = {{"x", x}, {"y", y}};
    return s;
  }
  at::Tensor w1, b1, w2, x, y;
};

inline const OpRow* find_op(const SnapshotDoc& doc, std::string_view name, Phase phase = Phase::forward) {
  for (const OpRow& op : doc.ops)
    if (op.name == name && op.phase == phase) return &op;
  return nullptr;
}

inline std::string module_of(const SnapshotDoc& doc, const OpRow& op) {
  return op.module == kNone ? "" : doc.modules[static_cast<std::size_t>(op.module)].path;
}

inline const OpRow& culprit_op(const SnapshotDoc& doc) {
  return doc.ops.at(static_cast<std::size_t>(doc.culprit.op));
}

}  // namespace nanquest::testing
