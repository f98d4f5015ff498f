#include "src/cuda/stream.h"

#include "src/cuda/caching_allocator.h"
#include "src/cuda/error.h"

namespace sconce::cuda {

Current& current() noexcept {
  static thread_local Current mine;
  return mine;
}

DeviceScope::DeviceScope(Device device) : before_(current()), changed_(device.index != before_.device) {
  if (!changed_) return;
  SCONCE_CUDA(cudaSetDevice(device.index));
  current() = {device.index, nullptr, nullptr, false};
}
DeviceScope::~DeviceScope() {
  if (!changed_) return;
  cudaSetDevice(before_.device);
  current() = before_;
}

Lane::Lane(Device device) : device_(device), memory_(nullptr) {
  const DeviceScope scope(device);
  SCONCE_CUDA(cudaSetDevice(device.index));  // the first use of a device on this thread makes its context current
  SCONCE_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  memory_ = CachingAllocator::create(device.index, stream_);
}

Lane::~Lane() {
  const DeviceScope scope(device_);
  cudaStreamSynchronize(stream_);
  memory_->orphan();
  cudaStreamDestroy(stream_);
}

void Lane::enter() {
  before_ = current();
  SCONCE_CUDA(cudaSetDevice(device_.index));
  current() = {device_.index, stream_, memory_, false};
}

void Lane::leave() noexcept {
  if (before_.device != device_.index) cudaSetDevice(before_.device);
  current() = before_;
}

void Lane::synchronize() { SCONCE_CUDA(cudaStreamSynchronize(stream_)); }

}  // namespace sconce::cuda
