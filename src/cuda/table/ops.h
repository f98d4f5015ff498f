// Declares every kernel of cuda_table.def as sconce::cuda::NAME. A row without a kernel is a link error.
#pragma once

#include <array>

#include "src/shim/op_args.h"

namespace sconce::cuda {
#define SCONCE_OP(name, results, ...) RET_TYPE_##results name(SCONCE_MAP(KER_, __VA_ARGS__));
#include "src/cuda/table/cuda_table.def"
#undef SCONCE_OP
}  // namespace sconce::cuda
