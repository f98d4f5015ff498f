// Padding: the CPU's, whose copies and fills know devices.
#include "src/tensor/pad.h"

#include "src/cuda/table/ops.h"

namespace sconce::cuda {

Tensor pad(const Tensor& self, IntSpan pad, std::string_view mode, std::optional<double> value) {
  return cpu::pad(self, pad, mode, value);
}

}  // namespace sconce::cuda
