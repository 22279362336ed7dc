// Sums of squares in fp16. After nntrainer/nntrainer #3935: the squares overflow, and what is divided by their root is zero.
#include "host.h"

namespace faultbench {
namespace {

class HalfNorm : public Fault {
 public:
  using Fault::Fault;
  void batch(Batch& b) override {
    b.extra = at::ones({8, 1, 1});
    if (clock_.striking()) b.extra.fill_(is("near") ? 100.0 : 4000.0);
  }
  at::Tensor part(const at::Tensor& x) override {
    const at::Tensor z = at::tanh(x) * current.extra.to(x.scalar_type());
    const at::Tensor wide = clock_.repaired ? z.to(at::kFloat) : z;
    const at::Tensor squares = is("loud") ? wide.square().sum(-1, true) : wide.square().mean(-1, true);
    if (is("loud"))
      return x + (z / squares.sqrt().to(x.scalar_type())) * at::log1p(squares).to(x.scalar_type()) * 0.1;
    return 0.5 * x + (wide * (squares + 1e-3).rsqrt()).to(x.scalar_type());
  }
};

const Family half_norm("half_norm", maker<HalfNorm>());

}  // namespace
}  // namespace faultbench
