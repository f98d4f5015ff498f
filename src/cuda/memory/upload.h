// Uploader: constants from pageable memory, such as a file's mapping, or from files to one device at the speed of the
// link.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "sconce/mutex.h"
#include "src/device/device_backend.h"

namespace sconce::cuda {

// Threads fill pinned buffers, two each, and send them on one stream: one thread copies from the page cache at a sixth
// of what PCIe 5 carries, and copies of several streams that are on their way together cost more than they hide.
// Buffers of 2 MiB, below which the link waits for the next copy, are taken when first used and kept. Thread-safe: one
// upload at a time, others wait. kDevice, kOutOfMemory; of files kIo, kFailedPrecondition.
class Uploader {
 public:
  explicit Uploader(int device) : device_(device) {}
  ~Uploader();
  Uploader(const Uploader&) = delete;
  Uploader& operator=(const Uploader&) = delete;

  // After all that is on `stream`; done when it returns. `tick` as in DeviceBackend::upload().
  // Gives the buffers back, unless one was under way since the last call.
  void trim() noexcept;
  void send(std::span<const Upload> uploads, cudaStream_t stream, const std::function<void(uint64_t)>& tick = {});

 private:
  // What one thread sends with: buffers, and whether what was sent from them last has left.
  struct Buffer {
    void* pinned = nullptr;
    cudaEvent_t sent = nullptr;
  };
  using Sender = std::array<Buffer, 2>;
  struct Work;
  struct Result;
  static cudaError_t open(Buffer& buffer);
  void close_buffers() noexcept SCONCE_REQUIRES(mutex_);
  static Result send_pieces(Sender& sender, Work& work, const std::function<void(uint64_t)>& tick);

  const int device_;
  Mutex mutex_;
  bool used_ SCONCE_GUARDED_BY(mutex_) = false;  // since the last trim()
  cudaStream_t stream_ SCONCE_GUARDED_BY(mutex_) = nullptr;
  cudaEvent_t begin_ SCONCE_GUARDED_BY(mutex_) = nullptr;
  std::vector<std::unique_ptr<Sender>> senders_ SCONCE_GUARDED_BY(mutex_);
};

}  // namespace sconce::cuda
