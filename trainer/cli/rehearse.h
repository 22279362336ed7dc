/// nanquest-trainer rehearse: a run's last steps before an incident again and again, with one thing changed
/// each time.
#pragma once

namespace nanquest::trainer {

/// `arguments` without the program's name and the word rehearse. Returns the exit code: 0 something cures, 1
/// nothing does, 2 usage, 3 a file, 130 interrupted.
int rehearse_command(int count, char** arguments);

}  // namespace nanquest::trainer
