// nanquest-trainer as a library that a Python process calls (`nanquest train`): there the ranks started by
// torchrun have a process group of gloo or NCCL, which C++ can't create.
#include <cstdio>

#include "trainer/cli/program.h"
#include "trainer/parallel/launch.h"

/// `group`: name of the process group of all ranks, "" for one process. Returns the exit code.
extern "C" __attribute__((visibility("default"))) int nanquest_trainer(int argc, char** argv,
                                                                       const char* group) {
  nanquest::trainer::offer_process_group(group);
  const int code = nanquest::trainer::run_program(argc, argv);
  (void)std::fflush(nullptr);
  return code;
}
