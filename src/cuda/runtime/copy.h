// Copies between the host and devices, and within a device. Matches at::Tensor::copy_ (torch 2.11).
#pragma once

#include "sconce/tensor.h"
#include "src/cuda/runtime/strided_copy.h"

namespace sconce::cuda {

// At least one tensor is on a device. Any strides and dtypes; source broadcasts. With `wait`, host memory may be reused
// on return.
void copy(const Tensor& source, Tensor& destination, bool wait);
void fill(Tensor& self, const void* element);
// Row-major, on the same device; `tensor` itself if it is row-major already.
Tensor contiguous(const Tensor& tensor);
// Row-major with that dtype; `tensor` itself, whatever its strides, if it has that dtype.
Tensor converted(const Tensor& tensor, DType dtype);
// Uninitialised, in the order of `like`'s memory, without gaps.
Tensor empty_dense(const Tensor& like, DType dtype, Device device);
// `tensor` itself if it has that dtype and device, else a copy in the order of its memory. Host memory may be reused on
// return.
Tensor moved_to(const Tensor& tensor, DType dtype, Device device);
void fill_zero(Tensor& t);
Tensor zeros(IntSpan sizes, DType dtype, Device device);

// The shape of a copy for kernels; to_item and from_item are bytes. Throws kUnsupported "NAME: ...".
CopyShape copy_shape(const char* name, IntSpan sizes, IntSpan to, size_t to_item, IntSpan from, size_t from_item);

}  // namespace sconce::cuda
