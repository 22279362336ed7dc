#define NANQUEST_KERNELS avx512_kernels
#define NANQUEST_KERNELS_NAME "avx512"
#define NANQUEST_VECTOR_BYTES 64
#include "probe/numerics/kernels_impl.h"
