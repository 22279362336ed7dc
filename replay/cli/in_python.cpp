// nanquest-replay as a library that a Python process calls (`nanquest replay --import MODULE`): operators
// that are written in Python run only there.
#include <cstdio>

#include "replay/cli/commands.h"

/// Returns the exit code.
extern "C" __attribute__((visibility("default"))) int nanquest_replay(int argc, char** argv) {
  const int code = nanquest::cli::run_program(argc, argv);
  (void)std::fflush(nullptr);
  return code;
}
