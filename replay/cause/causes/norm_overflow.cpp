// NORM_OVERFLOW: the norm of finite gradients overflows. Told by the op's name; its proof is not written yet.
#include "replay/cause/cause.h"

namespace nanquest {

NANQUEST_CAUSE(norm_overflow) = {
    .label = Label::norm_overflow,
    .phases = {Phase::optimizer},
    .resembles = [](const Case& c,
                    const Subject&) { return plain_name(*c.op()).find("norm") != std::string::npos; },
};

}  // namespace nanquest
