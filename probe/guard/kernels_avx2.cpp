// Compiled with AVX2, FMA and F16C on; called only where the processor has them.
#define NANQUEST_ISA avx2
#include "probe/guard/kernels.inl"
