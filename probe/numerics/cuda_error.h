/// CUDA's errors as ours, for the kernels' files.
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "probe/base/result.h"

namespace nanquest {

inline Error cuda_error(const char* what, cudaError_t code) {
  return {code == cudaErrorNoDevice || code == cudaErrorInsufficientDriver ? ErrorCode::unsupported : ErrorCode::io,
          std::string(what) + ": " + cudaGetErrorString(code), ""};
}

}  // namespace nanquest
