// Uploader: sends constants from pageable memory (such as a mapped file) or from files to one device at link speed.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "sconce/mutex.h"
#include "src/device/device_backend.h"

namespace sconce::cuda {

// Several threads fill two pinned buffers each and send them on one stream: a single thread copies from the page cache
// at a sixth of PCIe 5's rate, and concurrent copies on several streams cost more than they hide. Buffers have 2 MiB
// (with less, the link idles between copies), are allocated on first use and kept. Thread-safe: uploads take turns.
// Throws kDevice, kOutOfMemory; for files kIo, kFailedPrecondition.
class Uploader {
 public:
  explicit Uploader(int device) : device_(device) {}
  ~Uploader();
  Uploader(const Uploader&) = delete;
  Uploader& operator=(const Uploader&) = delete;

  // trim() frees the buffers unless an upload ran since the last call. send() starts after all work on `stream` and
  // returns when it is done; `tick` is DeviceBackend::upload()'s.
  void trim() noexcept;
  void send(std::span<const Upload> uploads, cudaStream_t stream, const std::function<void(uint64_t)>& tick = {});

 private:
  // A pinned buffer of one thread, and whether its last copy has finished.
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
