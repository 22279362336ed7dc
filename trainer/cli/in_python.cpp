// nanquest-trainer as a library that a process of Python's calls (`nanquest train`): there the ranks that
// torchrun started have a process group, of gloo or NCCL, which C++ can't make.
#include <cstdio>

#include "trainer/cli/program.h"
#include "trainer/parallel/launch.h"

/// `group`: name of the process group of all ranks, "" for one process. The exit code.
extern "C" __attribute__((visibility("default"))) int nanquest_trainer(int argc, char** argv,
                                                                       const char* group) {
  nanquest::trainer::offer_process_group(group);
  const int code = nanquest::trainer::run_program(argc, argv);
  (void)std::fflush(nullptr);
  return code;
}
