// Marks functions that the kernels of libsconce_cuda call as well. Such headers are C++17 and include only their like.
#pragma once

#ifdef __CUDACC__
#define SCONCE_HOST_DEVICE __host__ __device__
#else
#define SCONCE_HOST_DEVICE
#endif
