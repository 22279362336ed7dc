// nanquest-replay as a library that a process of Python's calls (`nanquest replay --import MODULE`):
// operators that are written in Python run there, and nowhere else.
#include <cstdio>

#include "replay/cli/commands.h"

/// The exit code.
extern "C" __attribute__((visibility("default"))) int nanquest_replay(int argc, char** argv) {
  const int code = nanquest::cli::run_program(argc, argv);
  (void)std::fflush(nullptr);
  return code;
}
