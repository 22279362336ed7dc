// INF_LOGIT: an infinite input to a softmax or a logit loss. Its proof is not written yet.
#include <ATen/ATen.h>

#include "replay/cause/cause.h"
#include "replay/cause/values.h"

namespace nanquest {

NANQUEST_CAUSE(inf_logit) = {
    .label = Label::inf_logit,
    .ops = {{"_softmax", "self"},
            {"_log_softmax", "self"},
            {"log_softmax", "self"},
            {"binary_cross_entropy_with_logits", "self"}},
    .yields_to = {Label::logspace_inf_grad, Label::mask_overflow},
    .resembles = [](const Case& c, const Subject&) { return reads_infinity(c.values(c.op_index())); },
};

}  // namespace nanquest
