#define NANQUEST_KERNELS generic_kernels
#define NANQUEST_KERNELS_NAME "generic"
#define NANQUEST_VECTOR_BYTES 16
#include "probe/numerics/kernels_impl.h"
