/// attempt: a failure of the probe never reaches the training.
#pragma once

#include <functional>

#include "probe/step/facts.h"

namespace nanquest {

/// Runs `work`. If it throws, returns the message with `doing` in front; otherwise nothing.
Facts attempt(const char* doing, const std::function<void()>& work);

}  // namespace nanquest
