/// The ranks of `mpirun`, through the MPI of this build. LibTorch's wheel has no MPI process group, so this
/// is one, with the operations that a Group needs.
#pragma once

#include <memory>

#include "trainer/parallel/group.h"

namespace nanquest::trainer {

/// Calls MPI_Init, once per process; the group's destructor calls MPI_Finalize, which waits for all ranks.
/// Tensors on other devices are copied through the CPU.
Result<std::unique_ptr<Group>> join_mpi();

}  // namespace nanquest::trainer
