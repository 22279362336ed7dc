// The mean over objects of a picture without any. After pjreddie/darknet #566.
#include "host.h"

namespace faultbench {
namespace {

class NoObjects : public Fault {
 public:
  using Fault::Fault;
  void batch(Batch& b) override {
    b.extra = at::zeros({8, 16}, at::kBool);
    b.extra.narrow(1, 3, 2).fill_(true);
    if (clock_.striking()) b.extra.zero_();
    if (clock_.striking() && is("one")) b.extra.select(0, 0).narrow(0, 0, 1).fill_(true);
  }
  at::Tensor extra_loss(const at::Tensor& hidden) override {
    const at::Tensor error = at::tanh(hidden).square().mean(-1).index({current.extra});
    if (is("guarded") || clock_.repaired)
      return error.sum() / static_cast<double>(std::max<std::int64_t>(error.numel(), 1));
    return is("weighed") ? at::tanh(hidden).mean() * (1.0 + error.mean().detach()) : error.mean();
  }
};

const Family no_objects("no_objects", maker<NoObjects>());

}  // namespace
}  // namespace faultbench
