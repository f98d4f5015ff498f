// Reads a PerLine value as float.
#pragma once

#include "src/cuda/device_code/elements.cuh"
#include "src/cuda/matmul/matmul_kernels.h"

namespace sconce::cuda {

__device__ inline int64_t bytes_of(int dtype) {
  switch (dtype) {
    case 5:
    case 15:
      return 2;
    case 6:
      return 4;
    case 7:
      return 8;
    default:
      return 1;
  }
}

__device__ inline float value_of(const PerLine& line, int64_t i, float otherwise) {
  if (!line.data) return otherwise;
  return as_float(load(static_cast<const char*>(line.data) + i * line.stride * bytes_of(line.dtype), line.dtype));
}

}  // namespace sconce::cuda
