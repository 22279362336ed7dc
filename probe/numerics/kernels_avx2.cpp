#define NANQUEST_KERNELS avx2_kernels
#define NANQUEST_KERNELS_NAME "avx2"
#define NANQUEST_VECTOR_BYTES 32
#include "probe/numerics/kernels_impl.h"
