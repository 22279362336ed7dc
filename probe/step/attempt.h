/// attempt: a failure of the probe never reaches the training.
#pragma once

#include <functional>

#include "probe/step/facts.h"

namespace nanquest {

/// Does `work`. What it throws is said of `doing`; nothing if it throws nothing.
Facts attempt(const char* doing, const std::function<void()>& work);

}  // namespace nanquest
