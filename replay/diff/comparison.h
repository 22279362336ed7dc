/// comparison: two recorded steps compared in one precision (differ.h decides in which).
#pragma once

#include "replay/diff/differ.h"

namespace nanquest::diff {

/// The findings of both steps run in `precision`, each as often as `settings` say. Throws std::exception if a
/// step can't be run.
Report compare_in(const Replayer& a, const Replayer& b, const Settings& settings, Precision precision);

}  // namespace nanquest::diff
