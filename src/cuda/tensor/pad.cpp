// Padding: the CPU's, whose copies and fills know devices.
#include "src/operators/cpu_ops.h"
#include "src/operators/cuda_ops.h"

namespace sconce::cuda {

Tensor pad(const Tensor& self, IntSpan pad, std::string_view mode, std::optional<double> value) {
  return cpu::pad(self, pad, mode, value);
}

}  // namespace sconce::cuda
