// Copies between the host and devices, and within a device. Matches at::Tensor::copy_ (torch 2.11).
#pragma once

#include "sconce/tensor.h"
#include "src/cuda/runtime/strided_copy.h"

namespace sconce::cuda {

// At least one is on a device; of any strides and dtypes, source broadcasts. wait: host memory may be used again when
// it returns.
void copy(const Tensor& source, Tensor& destination, bool wait);
void fill(Tensor& self, const void* element);
// Row-major, on its device; the tensor itself where it is so already.
Tensor contiguous(const Tensor& tensor);
// Row-major in that dtype; the tensor itself, of any strides, where it has it.
Tensor converted(const Tensor& tensor, DType dtype);
void fill_zero(Tensor& t);
Tensor zeros(IntSpan sizes, DType dtype, Device device);

// Where elements go and come from, as kernels walk over them; sizes of elements in bytes. kUnsupported "NAME: ...".
CopyShape copy_shape(const char* name, IntSpan sizes, IntSpan to, size_t to_item, IntSpan from, size_t from_item);

}  // namespace sconce::cuda
