// Pooling with windows known to the compiler, for pooling_kernels.cu: float, half and bfloat16, squares of 2 and 3.
// Others return false and launch nothing. Order of sums and choice of maxima equal the general kernels'.
#pragma once

#include "src/cuda/pooling/pooling_kernels.h"

namespace sconce::cuda {

bool max_windows(const PoolWalk& walk, int dtype, const void* in, void* out, int64_t* indices, cudaStream_t stream);
bool average_windows(const PoolWalk& walk, int dtype, const void* in, void* out, bool include_padding, int64_t divisor,
                     cudaStream_t stream);
bool max_window_slopes(const PoolWalk& walk, int dtype, const void* grad, const int64_t* indices, void* out,
                       cudaStream_t stream);
bool average_window_slopes(const PoolWalk& walk, int dtype, const void* grad, void* out, bool include_padding,
                           int64_t divisor, cudaStream_t stream);

}  // namespace sconce::cuda
