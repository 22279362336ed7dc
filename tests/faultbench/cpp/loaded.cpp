// What comes from outside is bad: a record of the data set, a weight of a checkpoint. After ds4dm/ecole #324, neoml-lib/neoml #576.
#include <ATen/core/grad_mode.h>

#include <limits>

#include "host.h"

namespace faultbench {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

class Loaded : public Fault {
 public:
  using Fault::Fault;
  void batch(Batch& b) override {
    if (clock_.striking() && is("record") && !clock_.repaired)
      b.x.select(0, 3).select(0, 2).narrow(0, 5, 1).fill_(nan);
  }
  void between(Parameters& parameters) override {
    if (!clock_.striking() || clock_.repaired) return;
    const at::NoGradGuard quiet;
    for (auto& [name, p] : parameters) {
      if (is("weight") && name == "blocks.5.up.weight") p.select(0, 2).narrow(0, 3, 1).fill_(nan);
    }
  }
};

const Family loaded("loaded", maker<Loaded>());

}  // namespace
}  // namespace faultbench
