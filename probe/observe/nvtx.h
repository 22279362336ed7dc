/// NVTX ranges for profiling. Without an attached tool a range costs a few nanoseconds; built without the
/// NVTX headers it costs nothing.
#pragma once

namespace nanquest {

/// Opens a nested range of this thread named `name` (copied by the tool during the call).
void nvtx_push(const char* name);
/// Closes the innermost range of this thread.
void nvtx_pop();
/// Whether this build has NVTX.
bool nvtx_available();

/// A range for the length of a scope: "step", "forward", "backward", "optimizer".
class NvtxRange {
 public:
  explicit NvtxRange(const char* name) { nvtx_push(name); }
  ~NvtxRange() { nvtx_pop(); }
  NvtxRange(const NvtxRange&) = delete;
  NvtxRange& operator=(const NvtxRange&) = delete;
};

}  // namespace nanquest
