// The derivative of a length at zero. After clab/dynet #1232.
#include "host.h"

namespace faultbench {
namespace {

class ZeroNorm : public Fault {
 public:
  using Fault::Fault;
  void batch(Batch& b) override {
    b.extra = at::ones({8, 1});
    if (clock_.striking()) b.extra.select(0, 3).zero_();
  }
  at::Tensor extra_loss(const at::Tensor& hidden) override {
    const at::Tensor z = at::tanh(hidden.mean(1)) * current.extra.to(hidden.scalar_type());
    if (is("library")) return 0.1 * at::linalg_vector_norm(z, 2, at::IntArrayRef{-1}).mean();
    const bool safe = is("inside") || clock_.repaired;
    return 0.1 * (z.square().sum(-1) + (safe ? 1e-6 : 0.0)).sqrt().mean();
  }
};

const Family zero_norm("zero_norm", maker<ZeroNorm>());

}  // namespace
}  // namespace faultbench
