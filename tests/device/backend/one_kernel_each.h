#pragma once

namespace nqdev {

/// Registers `launch` for all operators of LibTorch that the CPU has a kernel of its own for and this device has
/// none yet, and for the fused ones over lists. Once, when the device's own kernels are registered.
void register_one_kernel_each();

}  // namespace nqdev
