#include "probe/numerics/kernels.h"

namespace nanquest::detail {

int kernel_count() {
#if defined(NANQUEST_X86_KERNELS)
  static const int count = [] {
    __builtin_cpu_init();
    const bool v3 =
        __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
    const bool v4 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    return v3 ? (v4 ? 3 : 2) : 1;
  }();
  return count;
#else
  return 1;
#endif
}

const Kernels& kernel_table([[maybe_unused]] int i) {
#if defined(NANQUEST_X86_KERNELS)
  if (i == 2) return avx512_kernels();
  if (i == 1) return avx2_kernels();
#endif
  return generic_kernels();
}

const Kernels& best_kernels() {
  static const Kernels& best = kernel_table(kernel_count() - 1);
  return best;
}

}  // namespace nanquest::detail
