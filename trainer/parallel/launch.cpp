#include "trainer/parallel/launch.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>

#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>

#include "trainer/parallel/process_group.h"
#ifdef NANQUEST_HAVE_MPI
#include "trainer/parallel/mpi.h"
#endif

namespace nanquest::trainer {
namespace {

/// A number of the environment, -1 if missing.
std::int32_t number(const char* name) {
  const char* text = std::getenv(name);
  return text != nullptr && *text != '\0' ? static_cast<std::int32_t>(std::atoi(text)) : -1;
}

std::string& offered() {
  static std::string name;
  return name;
}

/// The group that Python has created.
std::unique_ptr<Group> join_offered() {
  ProcessGroupOptions options;
  options.local_rank = std::max(0, number("LOCAL_RANK"));
  options.local_size = std::max(1, number("LOCAL_WORLD_SIZE"));
  return group_of(c10d::resolve_process_group(offered()), std::move(options));
}

}  // namespace

void offer_process_group(const std::string& name) {
  offered() = name;
}

Launched launched() {
  struct Way {
    Launched::By by;
    const char *rank, *size;
  };
  // Open MPI; MPICH, Intel's and Slurm's PMI-2; Slurm's PMIx; torchrun.
  constexpr Way kWays[] = {{Launched::By::mpirun, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                           {Launched::By::mpirun, "PMI_RANK", "PMI_SIZE"},
                           {Launched::By::mpirun, "PMIX_RANK", "SLURM_NTASKS"},
                           {Launched::By::torchrun, "RANK", "WORLD_SIZE"}};
  for (const Way& way : kWays)
    if (const std::int32_t rank = number(way.rank), size = number(way.size); rank >= 0 && size > 1)
      return {way.by, rank, size};
  return {};
}

Result<std::unique_ptr<Group>> join(const Launched& by) {
  if (by.by == Launched::By::nobody) return std::unique_ptr<Group>();
  if (!offered().empty()) return join_offered();
  const std::string ranks = std::to_string(by.size);
  if (by.by == Launched::By::torchrun)
    return Error{ErrorCode::unsupported,
                 "one of " + ranks +
                     " processes of torchrun, which a program in C++ can't join: LibTorch comes without "
                     "gloo's headers",
                 "torchrun --nproc-per-node N -m nanquest train does it from Python; or mpirun -n " + ranks};
#ifdef NANQUEST_HAVE_MPI
  return join_mpi();
#else
  return Error{ErrorCode::unsupported,
               "one of " + ranks + " processes of mpirun, but this program was built without MPI",
               "install libopenmpi-dev and openmpi-bin and build it with -DNANQUEST_MPI=ON, or start it by "
               "torchrun --nproc-per-node N -m nanquest train"};
#endif
}

}  // namespace nanquest::trainer
