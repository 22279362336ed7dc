/// The ranks of `mpirun`, by the MPI that this was built with. LibTorch's wheel has no MPI among its process
/// groups, so this is one, of the operations that a Group needs.
#pragma once

#include <memory>

#include "trainer/parallel/group.h"

namespace nanquest::trainer {

/// Calls MPI_Init, once a process; the group's end calls MPI_Finalize, where all ranks meet. Tensors that are
/// not on the CPU go by way of it.
Result<std::unique_ptr<Group>> join_mpi();

}  // namespace nanquest::trainer
