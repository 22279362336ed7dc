/// nanquest-trainer as a function, called by its own main and by a Python process.
#pragma once

namespace nanquest::trainer {

/// The whole program, from its arguments to its exit code.
int run_program(int argc, char** argv);

}  // namespace nanquest::trainer
