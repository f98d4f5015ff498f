// Uploader: constants from pageable memory, such as a file's mapping, or from files to one device at the speed of the
// link.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "src/device/device_backend.h"

namespace sconce::cuda {

// Threads fill pinned buffers, two each, and send them on streams of their own: one thread copies from the page cache
// at a fifth of what PCIe 5 carries. Buffers of 1 MiB, which a core's cache holds, are taken when first used and kept.
// Thread-safe: one upload at a time, others wait. kDevice, kOutOfMemory; of files kIo, kFailedPrecondition.
class Uploader {
 public:
  explicit Uploader(int device) : device_(device) {}
  ~Uploader();
  Uploader(const Uploader&) = delete;
  Uploader& operator=(const Uploader&) = delete;

  // After all that is on `stream`; done when it returns. `tick` as in DeviceBackend::upload().
  void send(std::span<const Upload> uploads, cudaStream_t stream, const std::function<void(uint64_t)>& tick = {});

 private:
  // What one thread sends with.
  struct Sender {
    cudaStream_t stream = nullptr;
    std::array<void*, 2> pinned{};
    std::array<cudaEvent_t, 2> sent{};
  };
  struct Work;
  struct Result;
  static cudaError_t open(Sender& sender);
  static Result send_pieces(Sender& sender, Work& work, const std::function<void(uint64_t)>& tick);

  const int device_;
  std::mutex mutex_;
  cudaEvent_t begin_ = nullptr;
  std::vector<std::unique_ptr<Sender>> senders_;
};

}  // namespace sconce::cuda
