// Declares every CUDA kernel of op_table.def, as cpu_ops.h does for the CPU: sconce::cuda::NAME.
#pragma once

#include "src/operators/kernel_args.h"

namespace sconce::cuda {
#define SCONCE_OP(name, results, ...) RET_TYPE_##results name(SCONCE_MAP(KER_, __VA_ARGS__));
#include "src/operators/cuda_table.def"
#undef SCONCE_OP
}  // namespace sconce::cuda
