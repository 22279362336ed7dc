#include "probe/observe/nvtx.h"

#ifdef NANQUEST_NVTX
#include <nvtx3/nvToolsExt.h>
#endif

namespace nanquest {

#ifdef NANQUEST_NVTX
void nvtx_push(const char* name) {
  nvtxRangePushA(name);
}
void nvtx_pop() {
  nvtxRangePop();
}
bool nvtx_available() {
  return true;
}
#else
void nvtx_push(const char*) {}
void nvtx_pop() {}
bool nvtx_available() {
  return false;
}
#endif

}  // namespace nanquest
