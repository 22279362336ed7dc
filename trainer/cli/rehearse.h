/// nanquest-trainer rehearse: repeats a run's last steps before an incident, with one thing changed each
/// time.
#pragma once

namespace nanquest::trainer {

/// `arguments` without the program's name and the word rehearse. Returns the exit code: 0 a change cures, 1
/// none does, 2 usage, 3 a file, 130 interrupted.
int rehearse_command(int count, char** arguments);

}  // namespace nanquest::trainer
