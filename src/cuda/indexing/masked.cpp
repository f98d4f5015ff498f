// Selection by mask. Match aten::masked_select, masked_scatter and masked_scatter_backward (torch 2.15, CUDA). A source
// of too few elements is found when the stream has passed, and fails the run.
#include "src/tensor/rules/masked.h"

#include "src/cuda/indexing/index.h"
#include "src/cuda/indexing/nonzero.h"
#include "src/cuda/indexing/nonzero_kernels.h"
#include "src/cuda/runtime/copy.h"
#include "src/cuda/runtime/error.h"
#include "src/cuda/runtime/scratch.h"
#include "src/cuda/runtime/stream.h"
#include "src/operators/cuda_ops.h"
#include "src/tensor/strided_loop.h"

namespace sconce::cuda {

constexpr int kNote = static_cast<int>(Noted::kIndex);

Tensor masked_select(const Tensor& self, const Tensor& mask) {
  SCONCE_CHECK(mask.dtype() == DType::kBool, kInvalidArgument, "masked_select: expected BoolTensor for mask, got ",
               dtype_name(mask.dtype()));
  const DeviceScope scope(self.device());
  const Shape sizes = broadcast_shapes("masked_select", self.sizes(), mask.sizes());
  const Tensor values = contiguous(expand("masked_select", self, sizes));
  const Tensor numbers = numbers_of_nonzero(contiguous(expand("masked_select", mask, sizes)));
  Tensor out = Tensor::empty(numbers.sizes(), self.dtype(), self.device());
  if (out.numel() == 0) return out;
  launch_gather(values.data(), static_cast<int>(self.itemsize()), numbers.data_as<int64_t>(), out.numel(),
                values.numel(), out.data(), current_stream());
  SCONCE_CUDA(cudaGetLastError());
  return out;
}

Tensor masked_scatter(const Tensor& self, const Tensor& mask, const Tensor& source) {
  check_masked_scatter(self, mask, source);
  const DeviceScope scope(self.device());
  const Shape sizes = broadcast_shapes("masked_scatter", self.sizes(), mask.sizes());
  const Tensor from = cuda::contiguous(expand("masked_scatter", self, sizes)),
               set = cuda::contiguous(expand("masked_scatter", mask, sizes)), values = cuda::contiguous(source);
  Tensor out = Tensor::empty(sizes, self.dtype(), self.device());
  if (out.numel() == 0) return out;
  with_scratch("masked_scatter", self.dtype(), self.device(), [&](void* memory, size_t& bytes) {
    return masked_scatter(memory, bytes, mask_of(set), static_cast<int>(self.itemsize()), from.data(), values.data(),
                          source.numel(), out.data(), noted_by_kernels(), kNote, current_stream());
  });
  check_indices();
  return out;
}

Tensor masked_scatter_backward(const Tensor& grad_output, const Tensor& mask, IntSpan sizes) {
  SCONCE_CHECK(mask.dtype() == DType::kBool, kInvalidArgument, "masked_scatter_backward: expected a bool mask, got ",
               dtype_name(mask.dtype()));
  const DeviceScope scope(grad_output.device());
  Tensor out = Tensor::empty(sizes, grad_output.dtype(), grad_output.device());
  fill_zero(out);
  const Shape shape = broadcast_shapes("masked_scatter_backward", grad_output.sizes(), mask.sizes());
  const Tensor from = cuda::contiguous(expand("masked_scatter_backward", grad_output, shape)),
               set = cuda::contiguous(expand("masked_scatter_backward", mask, shape));
  if (from.numel() == 0) return out;
  const Tensor total = Tensor::empty({}, DType::kInt64, out.device());
  with_scratch("masked_scatter_backward", out.dtype(), out.device(), [&](void* memory, size_t& bytes) {
    return masked_gather(memory, bytes, mask_of(set), static_cast<int>(out.itemsize()), from.data(), out.data(),
                         out.numel(), total.data_as<int64_t>(), noted_by_kernels(), kNote, current_stream());
  });
  check_indices();
  return out;
}

}  // namespace sconce::cuda
