/// NANQUEST_HD: what runs on the host and in a CUDA kernel alike. Only nvcc sees the difference.
#pragma once

#if defined(__CUDACC__)
#define NANQUEST_HD __host__ __device__
#else
#define NANQUEST_HD
#endif
