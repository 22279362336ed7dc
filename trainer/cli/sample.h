/// `nanquest-trainer sample`: what a Hugging Face model goes on with, as tokens. `nanquest sample` makes text
/// of it.
#pragma once

namespace nanquest::trainer {

/// `arguments` are those behind "sample". Returns the exit code.
int sample_command(int count, char** arguments);

}  // namespace nanquest::trainer
