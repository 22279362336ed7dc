/// The summary of a run, on stdout.
#pragma once

#include <string>

#include "trainer/loop/config.h"

namespace nanquest::trainer {

/// A few lines for a person.
std::string summary_as_text(const Summary& summary);
/// The same as one JSON object: format "nanquest.training", version 1.
std::string summary_as_json(const Summary& summary);

}  // namespace nanquest::trainer
