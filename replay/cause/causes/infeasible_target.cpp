// INFEASIBLE_TARGET: a target that the loss can't meet. Told by the op's name; its proof is not written yet.
#include "replay/cause/cause.h"

namespace nanquest {

NANQUEST_CAUSE(infeasible_target) = {
    .label = Label::infeasible_target,
    .ops = {{"_ctc_loss", "targets"}},
    .resembles = [](const Case&, const Subject&) { return true; },
};

}  // namespace nanquest
