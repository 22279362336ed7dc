/// The summary of a run, on stdout.
#pragma once

#include <string>

#include "probe/base/result.h"
#include "trainer/loop/config.h"

namespace nanquest::trainer {

/// Prints `error` on stderr as one line of this program; returns its exit code.
int fail(const Error& error);
/// A few lines for the user.
std::string summary_as_text(const Summary& summary);
/// The same as one JSON object: format "nanquest.training", version 1.
std::string summary_as_json(const Summary& summary);

}  // namespace nanquest::trainer
