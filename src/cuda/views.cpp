// Operators that only change how memory is read: those of the CPU, which never touch it.
#include "src/cuda/ops.h"
#include "src/ops/view.h"

namespace sconce::cuda {

Tensor view_dtype(const Tensor& self, DType dtype) { return cpu::view_dtype(self, dtype); }

}  // namespace sconce::cuda
