// Marks functions that kernels of libsconce_cuda also call. Such headers are C++17 and include only headers of this
// kind.
#pragma once

#ifdef __CUDACC__
#define SCONCE_HOST_DEVICE __host__ __device__
#else
#define SCONCE_HOST_DEVICE
#endif
