/// nanquest-trainer as a function: its own main, and that of a process of Python's, which calls it.
#pragma once

namespace nanquest::trainer {

/// All of the program, from its arguments to its exit code.
int run_program(int argc, char** argv);

}  // namespace nanquest::trainer
