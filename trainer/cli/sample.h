/// `nanquest-trainer sample`: how a Hugging Face model continues a text, as tokens. `nanquest sample`
/// converts them to text.
#pragma once

namespace nanquest::trainer {

/// `arguments` are those behind "sample". Returns the exit code.
int sample_command(int count, char** arguments);

}  // namespace nanquest::trainer
