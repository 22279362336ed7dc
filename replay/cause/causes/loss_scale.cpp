// LOSS_SCALE: the scaler itself went wrong. Told by the op's name; its proof is not written yet.
#include "replay/cause/cause.h"

namespace nanquest {

NANQUEST_CAUSE(loss_scale) = {
    .label = Label::loss_scale,
    .phases = {Phase::optimizer},
    .resembles = [](const Case& c,
                    const Subject&) { return plain_name(*c.op()).find("_amp_") != std::string::npos; },
};

}  // namespace nanquest
