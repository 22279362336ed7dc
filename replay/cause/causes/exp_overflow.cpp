// EXP_OVERFLOW: exp of too large an argument. Told by the op's name; its proof is not written yet.
#include "replay/cause/cause.h"

namespace nanquest {

NANQUEST_CAUSE(exp_overflow) = {
    .label = Label::exp_overflow,
    .ops = {{"exp", "self"}, {"expm1", "self"}, {"exp2", "self"}, {"cosh", "self"}, {"sinh", "self"}},
    .resembles = [](const Case&, const Subject&) { return true; },
};

}  // namespace nanquest
