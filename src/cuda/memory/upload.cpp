#include "src/cuda/memory/upload.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "src/cuda/runtime/error.h"

namespace sconce::cuda {
namespace {

constexpr size_t kPiece = 2 << 20;
constexpr size_t kFirstPiece = 1 << 18;     // of each thread; small, so that the link starts early
constexpr size_t kBytesOfThread = 8 << 20;  // fewer bytes are sent before another thread could start
constexpr size_t kMaxThreads = 8;

#define SCONCE_RETURN_ERROR(expression) \
  if (const cudaError_t error = (expression); error != cudaSuccess) return error

// Returns 0, an errno, or -1 if the file is too short.
int read_all(int file, std::byte* to, size_t bytes, uint64_t offset) {
  while (bytes > 0) {
    const ssize_t n = ::pread(file, to, bytes, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n < 0 ? errno : -1;
    to += n;
    offset += static_cast<uint64_t>(n);
    bytes -= static_cast<size_t>(n);
  }
  return 0;
}

}  // namespace

struct Uploader::Result {
  cudaError_t device = cudaSuccess;
  int file = 0;  // result of read_all()
};

struct Uploader::Work {
  std::vector<Upload> pieces;
  cudaStream_t stream;
  std::atomic<size_t> next{0};
  std::atomic<uint64_t> done{0};
  // Skips the remaining pieces.
  void stop() { next.store(pieces.size(), std::memory_order_relaxed); }
};

Uploader::~Uploader() {
  close_buffers();
  if (begin_) SCONCE_CUDA_RELEASE(cudaEventDestroy(begin_));
  if (stream_) SCONCE_CUDA_RELEASE(cudaStreamDestroy(stream_));
}

void Uploader::close_buffers() noexcept {
  for (const auto& sender : senders_)
    for (const Buffer& buffer : *sender) {
      if (buffer.sent) SCONCE_CUDA_RELEASE(cudaEventDestroy(buffer.sent));
      if (buffer.pinned) SCONCE_CUDA_RELEASE(cudaFreeHost(buffer.pinned));
    }
  senders_.clear();
}

void Uploader::trim() noexcept {
  if (!mutex_.try_lock()) return;
  const MutexLock lock(mutex_, std::adopt_lock);
  if (!std::exchange(used_, false)) close_buffers();
}

// If a later step fails, the earlier ones' results stay for the next call.
cudaError_t Uploader::open(Buffer& buffer) {
  if (!buffer.sent) SCONCE_RETURN_ERROR(cudaEventCreateWithFlags(&buffer.sent, cudaEventDisableTiming));
  if (!buffer.pinned) SCONCE_RETURN_ERROR(cudaHostAlloc(&buffer.pinned, kPiece, cudaHostAllocPortable));
  return cudaEventSynchronize(buffer.sent);
}

Uploader::Result Uploader::send_pieces(Sender& sender, Work& work, const std::function<void(uint64_t)>& tick) {
  Result result;
  for (size_t turn = 0; result.device == cudaSuccess && result.file == 0; turn ^= 1) {
    const size_t i = work.next.fetch_add(1, std::memory_order_relaxed);
    if (i >= work.pieces.size()) break;
    const Upload& piece = work.pieces[i];
    Buffer& buffer = sender[turn];
    result.device = open(buffer);
    if (result.device != cudaSuccess) break;
    if (piece.from)
      std::memcpy(buffer.pinned, piece.from, piece.bytes);
    else
      result.file = read_all(piece.file, static_cast<std::byte*>(buffer.pinned), piece.bytes, piece.offset);
    if (result.file != 0) break;
    result.device = cudaMemcpyAsync(piece.to, buffer.pinned, piece.bytes, cudaMemcpyHostToDevice, work.stream);
    if (result.device == cudaSuccess) result.device = cudaEventRecord(buffer.sent, work.stream);
    const uint64_t done = work.done.fetch_add(piece.bytes, std::memory_order_relaxed) + piece.bytes;
    if (tick) tick(done);
  }
  if (result.device != cudaSuccess || result.file != 0) work.stop();
  return result;
}

void Uploader::send(std::span<const Upload> uploads, cudaStream_t stream, const std::function<void(uint64_t)>& tick) {
  Work work;
  size_t total = 0;
  for (const Upload& upload : uploads) {
    total += upload.bytes;
    for (size_t at = 0, bytes = 0; at < upload.bytes; at += bytes) {
      bytes = std::min(work.pieces.size() < kMaxThreads ? kFirstPiece : kPiece, upload.bytes - at);
      work.pieces.push_back({upload.from ? upload.from + at : nullptr, bytes, static_cast<std::byte*>(upload.to) + at,
                             upload.file, upload.offset + at});
    }
  }
  if (work.pieces.empty()) return;
  const size_t cores = std::max(1u, std::thread::hardware_concurrency());
  const size_t threads = std::clamp<size_t>(total / kBytesOfThread, 1, std::min(kMaxThreads, (3 * cores + 3) / 4));

  const MutexLock lock(mutex_);
  used_ = true;
  if (!stream_) SCONCE_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  if (!begin_) SCONCE_CUDA(cudaEventCreateWithFlags(&begin_, cudaEventDisableTiming));
  SCONCE_CUDA(cudaEventRecord(begin_, stream));
  SCONCE_CUDA(cudaStreamWaitEvent(stream_, begin_));
  work.stream = stream_;
  while (senders_.size() < threads) senders_.push_back(std::make_unique<Sender>());
  std::vector<Result> results(threads);
  cudaError_t last = cudaSuccess;
  {
    // On any exit, even if tick() throws, helpers end before the things that they use, and no copy is in flight when
    // the caller frees the memory.
    struct Wait {
      cudaStream_t stream;
      cudaError_t& last;
      ~Wait() { last = cudaStreamSynchronize(stream); }
    } const wait{stream_, last};
    std::vector<std::jthread> helpers;
    helpers.reserve(threads - 1);
    struct Stop {
      Work& work;
      ~Stop() { work.stop(); }
    } const stop{work};
    for (size_t i = 1; i < threads; ++i)
      helpers.emplace_back([&, i, &sender = *senders_[i]] {
        results[i].device = cudaSetDevice(device_);
        if (results[i].device == cudaSuccess) results[i] = send_pieces(sender, work, {});
      });
    results[0] = send_pieces(*senders_[0], work, tick);
  }
  for (const Result& result : results) {
    SCONCE_CHECK(result.file <= 0, kIo, "cannot read a file of weights: ", std::strerror(result.file));
    SCONCE_CHECK(result.file == 0, kFailedPrecondition, "a file of weights became shorter while it was read");
    check(result.device, "the upload of constants");
  }
  check(last, "the upload of constants");
}

}  // namespace sconce::cuda
