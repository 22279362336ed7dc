#include "trainer/parallel/launch.h"

#include <cstdlib>
#include <string>

#ifdef NANQUEST_HAVE_MPI
#include "trainer/parallel/mpi.h"
#endif

namespace nanquest::trainer {
namespace {

/// A number of the environment, -1 if it is not there.
std::int32_t number(const char* name) {
  const char* text = std::getenv(name);
  return text != nullptr && *text != '\0' ? static_cast<std::int32_t>(std::atoi(text)) : -1;
}

}  // namespace

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
  const std::string ranks = std::to_string(by.size);
#ifdef NANQUEST_HAVE_MPI
  if (by.by == Launched::By::mpirun) return join_mpi();
  const std::string way_out = "start them with mpirun -n " + ranks + " in place of torchrun";
#else
  const std::string way_out =
      "build it with an MPI (packages libopenmpi-dev, openmpi-bin; -DNANQUEST_MPI=ON says what is missing) and start it "
      "with mpirun -n " +
      ranks;
  if (by.by == Launched::By::mpirun)
    return Error{ErrorCode::unsupported, "one of " + ranks + " processes of mpirun, but this program was built without MPI",
                 way_out};
#endif
  return Error{ErrorCode::unsupported,
               "one of " + ranks +
                   " processes of torchrun, which it can't join: LibTorch's wheel comes without gloo's headers, so a "
                   "program in C++ can't make a process group of it",
               way_out};
}

}  // namespace nanquest::trainer
