#include "src/cuda/runtime/copy.h"

#include <array>
#include <atomic>

#include "src/cuda/runtime/error.h"
#include "src/cuda/runtime/stream.h"
#include "src/cuda/runtime/strided_copy.h"
#include "src/tensor/copy.h"
#include "src/tensor/strided_loop.h"

namespace sconce::cuda {
namespace {

bool equal(IntSpan a, IntSpan b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

// Both hold the same elements at the same offsets without gaps, so one memory copy suffices.
bool one_piece(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || !equal(a.sizes(), b.sizes())) return false;
  return (a.is_contiguous() && b.is_contiguous()) || (equal(a.strides(), b.strides()) && a.is_dense());
}

void copy_on_device(const Tensor& source, Tensor& destination) {
  const DeviceScope scope(destination.device());
  if (one_piece(source, destination)) {
    if (source.data() != destination.data())
      SCONCE_CUDA(cudaMemcpyAsync(destination.data(), source.data(), destination.bytes(), cudaMemcpyDeviceToDevice,
                                  current_stream()));
    return;
  }
  const Shape strides = broadcast_strides("copy_", source, destination.sizes());
  const CopyShape shape = copy_shape("copy_", destination.sizes(), destination.strides(), destination.itemsize(),
                                     strides, source.itemsize());
  if (source.dtype() == destination.dtype())
    launch_move(shape, destination.data(), source.data(), static_cast<int>(source.itemsize()), current_stream());
  else
    launch_copy(shape, destination.data(), static_cast<int>(destination.dtype()), source.data(),
                static_cast<int>(source.dtype()), current_stream());
  SCONCE_CUDA(cudaGetLastError());
}

// With the strides of `like` if that is dense, else row-major.
Tensor packed_like(const Tensor& like, DType dtype, Device device) {
  return like.is_dense() ? Tensor::empty_strided(like.sizes(), like.strides(), dtype, device)
                         : Tensor::empty(like.sizes(), dtype, device);
}

void transfer(const Tensor& source, Tensor& destination, cudaMemcpyKind kind) {
  SCONCE_CUDA(cudaMemcpyAsync(destination.data(), source.data(), destination.bytes(), kind, current_stream()));
}

// Also true if CUDA does not say; the caller then waits for the copy.
bool may_be_pinned(const void* address) {
  cudaPointerAttributes attributes{};
  if (cudaPointerGetAttributes(&attributes, address) == cudaSuccess) return attributes.type == cudaMemoryTypeHost;
  cudaGetLastError();
  return true;
}

void copy_to_device(const Tensor& source, Tensor& destination, bool wait) {
  const DeviceScope scope(destination.device());
  Tensor host = source;
  if (!one_piece(source, destination)) {
    host = packed_like(destination, destination.dtype(), Device{});
    sconce::copy(source, host);
  }
  if (one_piece(host, destination)) {
    transfer(host, destination, cudaMemcpyHostToDevice);
  } else {
    Tensor there = packed_like(host, host.dtype(), destination.device());
    transfer(host, there, cudaMemcpyHostToDevice);
    copy_on_device(there, destination);
  }
  // The call has read pageable memory when it returns, but pinned memory is read later. Outside a lane, we also wait
  // because we do not know which stream will use the data.
  const bool no_lane = !current().memory;
  if (host.storage() != source.storage() || (wait && (no_lane || may_be_pinned(host.data()))))
    SCONCE_CUDA(cudaStreamSynchronize(current_stream()));
}

void copy_to_host(const Tensor& source, Tensor& destination, bool wait) {
  const DeviceScope scope(source.device());
  if (one_piece(source, destination)) {
    transfer(source, destination, cudaMemcpyDeviceToHost);
    if (wait) SCONCE_CUDA(cudaStreamSynchronize(current_stream()));
    return;
  }
  Tensor there = source;
  if (!source.is_dense()) {
    there = Tensor::empty(source.sizes(), source.dtype(), source.device());
    copy_on_device(source, there);
  }
  Tensor host = packed_like(there, there.dtype(), Device{});
  transfer(there, host, cudaMemcpyDeviceToHost);
  SCONCE_CUDA(cudaStreamSynchronize(current_stream()));
  sconce::copy(host, destination);
}

// Lets the current device read the other device's memory directly. If the link or the machine does not allow that, the
// driver copies through the host.
void reach(int current, int other) {
  constexpr int kMaxDevices = 64;
  static std::array<std::atomic<bool>, kMaxDevices * kMaxDevices> asked;
  if (asked[static_cast<size_t>(current % kMaxDevices * kMaxDevices + other % kMaxDevices)].exchange(true)) return;
  int can = 0;
  if (cudaDeviceCanAccessPeer(&can, current, other) == cudaSuccess && can) {
    cudaDeviceEnablePeerAccess(other, 0);
    cudaMemPool_t pool = nullptr;
    const cudaMemAccessDesc access{{cudaMemLocationTypeDevice, current}, cudaMemAccessFlagsProtReadWrite};
    if (cudaDeviceGetDefaultMemPool(&pool, other) == cudaSuccess) cudaMemPoolSetAccess(pool, &access, 1);
  }
  cudaGetLastError();
}

void copy_between_devices(const Tensor& source, Tensor& destination) {
  Tensor from = source;
  {
    const DeviceScope scope(source.device());
    if (!one_piece(source, destination)) {
      from = packed_like(destination, destination.dtype(), source.device());
      copy_on_device(source, from);
    }
    SCONCE_CUDA(cudaStreamSynchronize(current_stream()));
  }
  const DeviceScope scope(destination.device());
  reach(destination.device().index, source.device().index);
  Tensor to = one_piece(from, destination) ? destination : packed_like(from, from.dtype(), destination.device());
  SCONCE_CUDA(cudaMemcpyPeerAsync(to.data(), destination.device().index, from.data(), source.device().index, to.bytes(),
                                  current_stream()));
  if (to.storage() != destination.storage()) copy_on_device(to, destination);
  SCONCE_CUDA(cudaStreamSynchronize(current_stream()));
}

}  // namespace

CopyShape copy_shape(const char* name, IntSpan sizes, IntSpan to, size_t to_item, IntSpan from, size_t from_item) {
  const StridedLoop<2> loop(sizes, {to, from}, {to_item, from_item});
  SCONCE_CHECK(loop.rank <= kMaxCopyRank, kUnsupported, name, ": ", loop.rank,
               " dimensions that cannot be merged are too many");
  CopyShape shape;
  shape.rank = loop.rank;
  shape.numel = loop.numel;
  for (int d = 0; d < loop.rank; ++d) {
    shape.sizes[d] = loop.sizes[static_cast<size_t>(d)];
    shape.to[d] = loop.strides[static_cast<size_t>(d)][0];
    shape.from[d] = loop.strides[static_cast<size_t>(d)][1];
  }
  return shape;
}

void copy(const Tensor& source, Tensor& destination, bool wait) {
  broadcast_strides("copy_", source, destination.sizes());
  if (destination.numel() == 0) return;
  if (source.is_cpu() || destination.is_cpu()) refuse_capture("copies from or to host memory");
  if (source.is_cpu()) return copy_to_device(source, destination, wait);
  if (destination.is_cpu()) return copy_to_host(source, destination, wait);
  if (source.device() == destination.device()) return copy_on_device(source, destination);
  copy_between_devices(source, destination);
}

void fill(Tensor& self, const void* element) {
  if (self.numel() == 0) return;
  const DeviceScope scope(self.device());
  const CopyShape shape =
      copy_shape("copy_", self.sizes(), self.strides(), self.itemsize(), self.strides(), self.itemsize());
  launch_fill(shape, self.data(), element, static_cast<int>(self.itemsize()), current_stream());
  SCONCE_CUDA(cudaGetLastError());
}

Tensor contiguous(const Tensor& tensor) {
  if (tensor.is_contiguous()) return tensor;
  Tensor packed = Tensor::empty(tensor.sizes(), tensor.dtype(), tensor.device());
  copy_on_device(tensor, packed);
  return packed;
}

Tensor converted(const Tensor& tensor, DType dtype) {
  if (tensor.dtype() == dtype) return tensor;
  Tensor out = Tensor::empty(tensor.sizes(), dtype, tensor.device());
  copy(tensor, out, false);
  return out;
}
Tensor empty_dense(const Tensor& like, DType dtype, Device device) {
  return Tensor::empty_strided(like.sizes(),
                               like.is_dense() ? Shape(like.strides()) : dense_strides(like.sizes(), like.strides()),
                               dtype, device);
}
Tensor moved_to(const Tensor& tensor, DType dtype, Device device) {
  if (tensor.dtype() == dtype && tensor.device() == device) return tensor;
  Tensor out = empty_dense(tensor, dtype, device);
  copy(tensor, out, true);
  return out;
}

void fill_zero(Tensor& t) {
  const unsigned char zero[16] = {};
  fill(t, zero);
}

Tensor zeros(IntSpan sizes, DType dtype, Device device) {
  Tensor out = Tensor::empty(sizes, dtype, device);
  fill_zero(out);
  return out;
}

}  // namespace sconce::cuda
