// A transcript longer than its recording. After SeanNaren/warp-ctc #29.
#include "host.h"

namespace faultbench {
namespace {

class Labels : public Fault {
 public:
  using Fault::Fault;
  void batch(Batch& b) override {
    b.extra = (at::arange(9).unsqueeze(0) + at::arange(8).unsqueeze(1)).remainder(7) + 1;
    if (clock_.striking() && !is("fits"))
      b.extra.select(0, 2).fill_(3);  // 9 letters, 8 blanks between them, 16 frames
  }
  at::Tensor extra_loss(const at::Tensor& hidden) override {
    const at::Tensor log = at::log_softmax(hidden.narrow(-1, 0, 8), -1).transpose(0, 1);
    at::Tensor lengths = at::full({8}, 9, at::kLong);
    if (clock_.repaired) lengths.select(0, 2).fill_(5);
    return 0.05 * at::ctc_loss(log, current.extra, at::full({8}, 16, at::kLong), lengths, 0,
                               at::Reduction::Mean, is("zeroed"));
  }
};

const Family labels("labels", maker<Labels>());

}  // namespace
}  // namespace faultbench
