// Operators that change how memory is read, or a tensor's own sizes and storage: those of the CPU, whose copies know
// devices.
#include "src/operators/cpu_ops.h"
#include "src/operators/cuda_ops.h"

namespace sconce::cuda {

Tensor narrow(const Tensor& self, int64_t dim, int64_t start, int64_t length) {
  return cpu::narrow(self, dim, start, length);
}
Tensor permute(const Tensor& self, IntSpan dims) { return cpu::permute(self, dims); }
Tensor reshape(const Tensor& self, IntSpan shape) { return cpu::reshape(self, shape); }  // its copy knows devices
Tensor slice_Tensor(const Tensor& self, int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end,
                    int64_t step) {
  return cpu::slice_Tensor(self, dim, start, end, step);
}
Tensor squeeze_dim(const Tensor& self, int64_t dim) { return cpu::squeeze_dim(self, dim); }
Tensor view_as_complex(const Tensor& self) { return cpu::view_as_complex(self); }
Tensor view_as_real(const Tensor& self) { return cpu::view_as_real(self); }
Tensor view_dtype(const Tensor& self, DType dtype) { return cpu::view_dtype(self, dtype); }

void resize_(Tensor& self, IntSpan size, OptEnum memory_format) { cpu::resize_(self, size, memory_format); }
void resize_as_(Tensor& self, const Tensor& the_template, OptEnum memory_format) {
  cpu::resize_as_(self, the_template, memory_format);
}
void set__source_Tensor(Tensor& self, const Tensor& source) { cpu::set__source_Tensor(self, source); }

}  // namespace sconce::cuda
