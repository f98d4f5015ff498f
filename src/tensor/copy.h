// Copies and clones. Matches at::Tensor::copy_, contiguous, clone and to (torch 2.15).
//
// Any dtypes, any strides. CPU tensors only. Uses the calling thread's team (src/device/threads.h).
#pragma once

#include "sconce/tensor.h"

namespace sconce {

// destination.copy_(source): broadcasts, converts. kInvalidArgument if source does not broadcast, or if the written
// elements overlap each other or overlap the source other than exactly; kUnsupported for float4 to another dtype.
void copy(const Tensor& source, Tensor& destination);

// The tensor itself if it is already contiguous.
Tensor contiguous(const Tensor& tensor);
// clone(preserve_format): dense, dimensions in the order of the source's memory.
Tensor clone(const Tensor& tensor);
Tensor clone_contiguous(const Tensor& tensor);
// Same sizes and strides, overlaps and gaps included, in a storage of minimal length; offset 0.
Tensor clone_preserve_strides(const Tensor& tensor);
// As above, in this memory of the tensor's device, from its beginning.
Tensor clone_in(const Tensor& tensor, const StoragePtr& memory);
// to(dtype): the tensor itself if it has the dtype; else a converted clone(preserve_format).
Tensor to_dtype(const Tensor& tensor, DType dtype);
// empty_like(preserve_format), possibly of another dtype.
Tensor empty_like(const Tensor& tensor, DType dtype);
inline Tensor empty_like(const Tensor& tensor) { return empty_like(tensor, tensor.dtype()); }

}  // namespace sconce
