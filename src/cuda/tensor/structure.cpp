// Operators that only move elements. They call the CPU's functions, whose copies and fills work on devices too.
#include "src/cuda/runtime/copy.h"
#include "src/cuda/runtime/stream.h"
#include "src/operators/cpu_ops.h"
#include "src/operators/cuda_ops.h"

namespace sconce::cuda {

Tensor cat(TensorList tensors, int64_t dim) { return cpu::cat(tensors, dim); }

Tensor pad(const Tensor& self, IntSpan pad, std::string_view mode, std::optional<double> value) {
  return cpu::pad(self, pad, mode, value);
}

void fill__Scalar(const Tensor& self, double value) { cpu::fill__Scalar(self, value); }

Tensor _efficientzerotensor(IntSpan size, std::optional<DType> dtype, std::optional<int32_t>,
                            std::optional<Device> device, std::optional<int32_t>) {
  Tensor out = Tensor::empty(size, dtype.value_or(DType::kFloat32), device_or_current(device));
  fill_zero(out);
  return out;
}

void resize_(Tensor& self, IntSpan size, std::optional<int32_t> memory_format) {
  cpu::resize_(self, size, memory_format);
}
void resize_as_(Tensor& self, const Tensor& the_template, std::optional<int32_t> memory_format) {
  cpu::resize_as_(self, the_template, memory_format);
}
void set__source_Tensor(Tensor& self, const Tensor& source) { cpu::set__source_Tensor(self, source); }

}  // namespace sconce::cuda
