// Attention over samples that are all padding. After 1bit-MONSTER/1bit-MONSTER #656 (a softmax over -inf alone).
#include <limits>

#include "host.h"

namespace faultbench {
namespace {

class Rows : public Fault {
 public:
  using Fault::Fault;
  void batch(Batch& b) override {
    b.extra = at::zeros({8, 16}, at::kBool);
    b.extra.select(0, 1).narrow(0, 10, 6).fill_(true);
    if (clock_.striking() && !is("partly")) b.extra.select(0, 2).fill_(true);
  }
  at::Tensor part(const at::Tensor& x) override {
    at::Tensor scores = at::matmul(x, x.transpose(1, 2)) * 0.1;
    const double low = is("finite") ? -1e4 : -std::numeric_limits<double>::infinity();
    at::Tensor hidden = current.extra.unsqueeze(1);
    if (clock_.repaired) hidden = hidden.logical_and(current.extra.all(1, true).unsqueeze(1).logical_not());
    scores = scores.masked_fill(hidden, low);
    return x + at::matmul(at::softmax(scores, -1), x);
  }
};

const Family rows("rows", maker<Rows>());

}  // namespace
}  // namespace faultbench
