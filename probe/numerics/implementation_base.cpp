#define NANQUEST_IMPLEMENTATION kBase
#define NANQUEST_IMPLEMENTATION_NAME "base"
#define NANQUEST_VECTOR_BYTES 16
#include "probe/numerics/kernels.h"
