// Uploader: constants from pageable memory, such as a file's mapping, to one device at the speed of the link.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "src/device/device_backend.h"

namespace sconce::cuda {

// Threads fill pinned buffers, two each, and send them on streams of their own: one thread copies from the page cache
// at a quarter of what PCIe 5 carries. Buffers of 2 MiB are taken when first used and kept. Thread-safe: one upload at
// a time, others wait. kDevice, kOutOfMemory.
class Uploader {
 public:
  explicit Uploader(int device) : device_(device) {}
  ~Uploader();
  Uploader(const Uploader&) = delete;
  Uploader& operator=(const Uploader&) = delete;

  // After all that is on `stream`; done when it returns.
  void send(std::span<const Upload> uploads, cudaStream_t stream);

 private:
  struct Piece {
    const std::byte* from;
    std::byte* to;
    size_t bytes;
  };
  // What one thread sends with.
  struct Sender {
    cudaStream_t stream = nullptr;
    std::array<void*, 2> pinned{};
    std::array<cudaEvent_t, 2> sent{};
  };
  static cudaError_t open(Sender& sender);
  static cudaError_t send_pieces(Sender& sender, std::span<const Piece> pieces, std::atomic<size_t>& next,
                                 cudaEvent_t begin);

  const int device_;
  std::mutex mutex_;
  cudaEvent_t begin_ = nullptr;
  std::vector<std::unique_ptr<Sender>> senders_;
};

}  // namespace sconce::cuda
