// LOGSPACE_INF_GRAD: log-space arithmetic on nothing but -Inf. Told by the op whose derivative it is; its
// proof is not written yet.
#include "replay/cause/cause.h"

namespace nanquest {

NANQUEST_CAUSE(logspace_inf_grad) = {
    .label = Label::logspace_inf_grad,
    .derivative_of = true,
    .ops = {{"logsumexp", "self"}, {"logaddexp", "self"}, {"_logcumsumexp", "self"}},
    .yields_to = {Label::exp_overflow, Label::empty_reduction, Label::degenerate_linalg,
                  Label::eps_underflow},
    .resembles = [](const Case&, const Subject&) { return true; },
};

}  // namespace nanquest
