// Match aten::nonzero and nonzero_static (torch 2.15, CUDA).
#include "src/cuda/indexing/nonzero.h"

#include <algorithm>

#include "src/cuda/indexing/nonzero_kernels.h"
#include "src/cuda/runtime/copy.h"
#include "src/cuda/runtime/error.h"
#include "src/cuda/runtime/stream.h"
#include "src/operators/cuda_ops.h"

namespace sconce::cuda {

namespace {

// Packed elements whose nonzero ones are counted in chunks.
struct Counted {
  explicit Counted(const Tensor& packed)
      : in{packed.data(), static_cast<int>(packed.dtype()), packed.numel()}, chunks(nonzero_chunks(in)) {
    const int64_t size = chunks + 1;
    counts = Tensor::empty(IntSpan(&size, 1), DType::kInt64, packed.device());
    launch_nonzero_counts(in, counts.data_as<int64_t>(), current_stream());
    SCONCE_CUDA(cudaGetLastError());
  }
  // Waits for the device.
  int64_t total() const {
    int64_t found = 0;
    SCONCE_CUDA(cudaMemcpyAsync(&found, counts.data_as<int64_t>() + chunks, sizeof found, cudaMemcpyDeviceToHost,
                                current_stream()));
    SCONCE_CUDA(cudaStreamSynchronize(current_stream()));
    return found;
  }
  // to [room, rank], each dimension a column.
  void write(IntSpan sizes, int64_t room, int64_t fill_value, Tensor& to) const {
    launch_nonzero_coordinates(in, counts.data_as<int64_t>(), static_cast<int>(sizes.size()), sizes.data(), room,
                               fill_value, to.data_as<int64_t>(), current_stream());
    SCONCE_CUDA(cudaGetLastError());
  }

  NonzeroInput in;
  int64_t chunks;
  Tensor counts;
};

// [count, sizes.size()], each dimension a column, as in ATen.
Tensor columns(int64_t count, IntSpan sizes, Device device) {
  const int64_t shape[] = {count, static_cast<int64_t>(sizes.size())}, strides[] = {1, std::max<int64_t>(count, 1)};
  return Tensor::empty_strided(shape, strides, DType::kInt64, device);
}

// The coordinates of the nonzero elements of `packed`, seen as a tensor of these sizes. Waits for their count.
Tensor coordinates(const Tensor& packed, IntSpan sizes) {
  refuse_capture("results whose size depends on values");
  if (packed.numel() == 0) return columns(0, sizes, packed.device());
  const Counted counted(packed);
  const int64_t found = counted.total();
  Tensor out = columns(found, sizes, packed.device());
  if (out.numel() > 0) counted.write(sizes, found, 0, out);
  return out;
}

}  // namespace

Tensor numbers_of_nonzero(const Tensor& packed) {
  const int64_t count = packed.numel(), one = 1;
  const Tensor found = coordinates(packed, IntSpan(&count, 1));
  return found.as_strided(IntSpan(found.sizes().data(), 1), IntSpan(&one, 1), 0);
}

Tensor nonzero(const Tensor& self) {
  const DeviceScope scope(self.device());
  SCONCE_CHECK(self.dim() <= 16, kUnsupported, "nonzero: ", self.dim(), " dimensions on CUDA");
  return coordinates(contiguous(self), self.sizes());
}

Tensor nonzero_static(const Tensor& self, int64_t size, int64_t fill_value) {
  SCONCE_CHECK(size >= 0, kInvalidArgument, "nonzero_static: 'size' must be an non-negative integer, got ", size);
  SCONCE_CHECK(self.dim() <= 16, kUnsupported, "nonzero_static: ", self.dim(), " dimensions on CUDA");
  const DeviceScope scope(self.device());
  Tensor out = columns(size, self.sizes(), self.device());
  if (out.numel() == 0) return out;
  if (self.numel() == 0) {
    fill(out, &fill_value);
    return out;
  }
  const Tensor packed = cuda::contiguous(self);
  Counted(packed).write(self.sizes(), size, fill_value, out);
  return out;
}

}  // namespace sconce::cuda
