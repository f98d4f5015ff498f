// Fills: the CPU's, which know devices.
#include "src/tensor/fill.h"

#include "src/cuda/table/ops.h"

namespace sconce::cuda {

void fill__Scalar(const Tensor& self, double value) { cpu::fill__Scalar(self, value); }

}  // namespace sconce::cuda
