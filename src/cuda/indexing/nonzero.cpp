// Match aten::nonzero and nonzero_static (torch 2.15, CUDA).
#include "src/cuda/indexing/nonzero.h"

#include <utility>

#include "src/cuda/indexing/nonzero_kernels.h"
#include "src/cuda/runtime/copy.h"
#include "src/cuda/runtime/error.h"
#include "src/cuda/runtime/scratch.h"
#include "src/cuda/runtime/stream.h"
#include "src/operators/cuda_ops.h"

namespace sconce::cuda {

Tensor numbers_of_nonzero(const Tensor& packed) {
  refuse_capture("results whose size depends on values");
  const int64_t count = packed.numel();
  int64_t found = 0;
  Tensor selected = Tensor::empty(IntSpan(&count, 1), DType::kInt64, packed.device());
  if (count > 0) {
    const Tensor flags = Tensor::empty(IntSpan(&count, 1), DType::kUInt8, packed.device());
    const Tensor total = Tensor::empty({}, DType::kInt64, packed.device());
    launch_flags(packed.data(), static_cast<int>(packed.dtype()), count, flags.data_as<uint8_t>(), current_stream());
    with_scratch("nonzero", packed.dtype(), packed.device(), [&](void* memory, size_t& bytes) {
      return select_nonzero(memory, bytes, flags.data_as<uint8_t>(), count, selected.data_as<int64_t>(),
                            total.data_as<int64_t>(), current_stream());
    });
    SCONCE_CUDA(cudaMemcpyAsync(&found, total.data(), sizeof found, cudaMemcpyDeviceToHost, current_stream()));
    SCONCE_CUDA(cudaStreamSynchronize(current_stream()));
  }
  const int64_t one = 1;
  return selected.as_strided(IntSpan(&found, 1), IntSpan(&one, 1), 0);
}

// [count, rank], column by column as in PyTorch. Waits for the count.
Tensor nonzero(const Tensor& self) {
  const DeviceScope scope(self.device());
  const int64_t rank = self.dim();
  SCONCE_CHECK(rank <= 16, kUnsupported, "nonzero: ", rank, " dimensions on CUDA");
  const Tensor selected = numbers_of_nonzero(contiguous(self));
  const int64_t found = selected.numel();
  const int64_t sizes[] = {found, rank}, strides[] = {1, std::max<int64_t>(found, 1)};
  Tensor out = Tensor::empty_strided(sizes, strides, DType::kInt64, self.device());
  if (found > 0 && rank > 0)
    launch_coordinates(selected.data_as<int64_t>(), found, static_cast<int>(rank), self.sizes().data(),
                       out.data_as<int64_t>(), current_stream());
  SCONCE_CUDA(cudaGetLastError());
  return out;
}

Tensor nonzero_static(const Tensor& self, int64_t size, int64_t fill_value) {
  SCONCE_CHECK(size >= 0, kInvalidArgument, "nonzero_static: 'size' must be an non-negative integer, got ", size);
  SCONCE_CHECK(self.dim() <= 16, kUnsupported, "nonzero_static: ", self.dim(), " dimensions on CUDA");
  const DeviceScope scope(self.device());
  // Each dimension is a column, as in ATen.
  const int64_t sizes[] = {size, self.dim()}, strides[] = {1, std::max<int64_t>(size, 1)}, count = self.numel();
  Tensor out = Tensor::empty_strided(sizes, strides, DType::kInt64, self.device());
  fill(out, &fill_value);
  if (out.numel() == 0 || count == 0) return out;
  Tensor flags = cuda::contiguous(self);
  const Tensor total = Tensor::empty({}, DType::kInt64, self.device());
  if (self.dtype() != DType::kBool) {
    const Tensor packed = std::exchange(flags, Tensor::empty(IntSpan(&count, 1), DType::kUInt8, self.device()));
    launch_flags(packed.data(), static_cast<int>(packed.dtype()), count, flags.data_as<uint8_t>(), current_stream());
  }
  with_scratch("nonzero_static", self.dtype(), self.device(), [&](void* memory, size_t& bytes) {
    return select_coordinates(memory, bytes, mask_of(flags), static_cast<int>(self.dim()), self.sizes().data(), size,
                              out.data_as<int64_t>(), total.data_as<int64_t>(), current_stream());
  });
  SCONCE_CUDA(cudaGetLastError());
  return out;
}

}  // namespace sconce::cuda
