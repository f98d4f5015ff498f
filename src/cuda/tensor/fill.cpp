// Fills: the CPU's, which know devices.
#include "src/tensor/fill.h"

#include "src/operators/cpu_ops.h"
#include "src/operators/cuda_ops.h"

namespace sconce::cuda {

void fill__Scalar(const Tensor& self, double value) { cpu::fill__Scalar(self, value); }

}  // namespace sconce::cuda
