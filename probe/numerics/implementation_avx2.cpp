#define NANQUEST_IMPLEMENTATION kAvx2
#define NANQUEST_IMPLEMENTATION_NAME "avx2"
#define NANQUEST_VECTOR_BYTES 32
#include "probe/numerics/kernels.h"
