#define NANQUEST_IMPLEMENTATION kAvx512
#define NANQUEST_IMPLEMENTATION_NAME "avx512"
#define NANQUEST_VECTOR_BYTES 64
#include "probe/numerics/kernels.h"
