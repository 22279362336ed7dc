/// NANQUEST_HD marks functions that run on the host and in a CUDA kernel. It is empty without nvcc.
#pragma once

#if defined(__CUDACC__)
#define NANQUEST_HD __host__ __device__
#else
#define NANQUEST_HD
#endif
