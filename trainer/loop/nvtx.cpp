#include "trainer/loop/nvtx.h"

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define NANQUEST_HAS_NVTX 1
#else
#define NANQUEST_HAS_NVTX 0
#endif

namespace nanquest::trainer {

#if NANQUEST_HAS_NVTX
PhaseRange::PhaseRange(const char* name) {
  nvtxRangePushA(name);
}
PhaseRange::~PhaseRange() {
  nvtxRangePop();
}
#else
PhaseRange::PhaseRange(const char*) {}
PhaseRange::~PhaseRange() = default;
#endif

bool has_phase_ranges() {
  return NANQUEST_HAS_NVTX != 0;
}

}  // namespace nanquest::trainer
