#include "src/cuda/upload.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "src/cuda/error.h"

namespace sconce::cuda {
namespace {

constexpr size_t kPiece = 1 << 20;
constexpr size_t kBytesOfThread = 8 << 20;  // fewer are sent sooner than another thread starts
constexpr size_t kMaxThreads = 12;

#define SCONCE_RETURN_ERROR(expression) \
  if (const cudaError_t error = (expression); error != cudaSuccess) return error

// 0, or errno; -1 where the file ends before.
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
  int file = 0;  // as of read_all()
};

struct Uploader::Work {
  std::vector<Upload> pieces;
  cudaEvent_t begin;
  std::atomic<size_t> next{0};
  std::atomic<uint64_t> done{0};
  // The rest is left undone.
  void stop() { next.store(pieces.size(), std::memory_order_relaxed); }
};

Uploader::~Uploader() {
  for (const auto& sender : senders_) {
    if (sender->stream) cudaStreamDestroy(sender->stream);
    for (const cudaEvent_t event : sender->sent)
      if (event) cudaEventDestroy(event);
    for (void* pinned : sender->pinned)
      if (pinned) cudaFreeHost(pinned);
  }
  if (begin_) cudaEventDestroy(begin_);
}

// What is there already stays where a later step fails.
cudaError_t Uploader::open(Sender& sender) {
  if (!sender.stream) SCONCE_RETURN_ERROR(cudaStreamCreateWithFlags(&sender.stream, cudaStreamNonBlocking));
  for (cudaEvent_t& event : sender.sent)
    if (!event) SCONCE_RETURN_ERROR(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  for (void*& pinned : sender.pinned)
    if (!pinned) SCONCE_RETURN_ERROR(cudaHostAlloc(&pinned, kPiece, cudaHostAllocPortable));
  return cudaSuccess;
}

Uploader::Result Uploader::send_pieces(Sender& sender, Work& work, const std::function<void(uint64_t)>& tick) {
  Result result;
  result.device = open(sender);
  if (result.device == cudaSuccess) result.device = cudaStreamWaitEvent(sender.stream, work.begin);
  for (size_t turn = 0; result.device == cudaSuccess && result.file == 0; turn ^= 1) {
    const size_t i = work.next.fetch_add(1, std::memory_order_relaxed);
    if (i >= work.pieces.size()) break;
    const Upload& piece = work.pieces[i];
    void* const pinned = sender.pinned[turn];
    result.device = cudaEventSynchronize(sender.sent[turn]);
    if (result.device != cudaSuccess) break;
    if (piece.from)
      std::memcpy(pinned, piece.from, piece.bytes);
    else
      result.file = read_all(piece.file, static_cast<std::byte*>(pinned), piece.bytes, piece.offset);
    if (result.file != 0) break;
    result.device = cudaMemcpyAsync(piece.to, pinned, piece.bytes, cudaMemcpyHostToDevice, sender.stream);
    if (result.device == cudaSuccess) result.device = cudaEventRecord(sender.sent[turn], sender.stream);
    const uint64_t done = work.done.fetch_add(piece.bytes, std::memory_order_relaxed) + piece.bytes;
    if (tick) tick(done);
  }
  if (result.device != cudaSuccess || result.file != 0) work.stop();
  if (const cudaError_t last = cudaStreamSynchronize(sender.stream); result.device == cudaSuccess) result.device = last;
  return result;
}

void Uploader::send(std::span<const Upload> uploads, cudaStream_t stream, const std::function<void(uint64_t)>& tick) {
  Work work;
  size_t total = 0;
  for (const Upload& upload : uploads) {
    total += upload.bytes;
    for (size_t at = 0; at < upload.bytes; at += kPiece)
      work.pieces.push_back({upload.from ? upload.from + at : nullptr, std::min(kPiece, upload.bytes - at),
                             static_cast<std::byte*>(upload.to) + at, upload.file, upload.offset + at});
  }
  if (work.pieces.empty()) return;
  const size_t cores = std::max(1u, std::thread::hardware_concurrency());
  const size_t threads = std::clamp<size_t>(total / kBytesOfThread, 1, std::min(kMaxThreads, (3 * cores + 3) / 4));

  const std::lock_guard lock(mutex_);
  if (!begin_) SCONCE_CUDA(cudaEventCreateWithFlags(&begin_, cudaEventDisableTiming));
  SCONCE_CUDA(cudaEventRecord(begin_, stream));
  work.begin = begin_;
  while (senders_.size() < threads) senders_.push_back(std::make_unique<Sender>());
  std::vector<Result> results(threads);
  {
    std::vector<std::jthread> helpers;  // joined before anything they use goes, whatever happens
    helpers.reserve(threads - 1);
    // Where tick() throws: nothing is on its way any more when the caller gives the memory back.
    struct Stop {
      Work& work;
      Sender& mine;
      ~Stop() {
        work.stop();
        if (mine.stream) cudaStreamSynchronize(mine.stream);
      }
    } const stop{work, *senders_[0]};
    for (size_t i = 1; i < threads; ++i)
      helpers.emplace_back([&, i] {
        results[i].device = cudaSetDevice(device_);
        if (results[i].device == cudaSuccess) results[i] = send_pieces(*senders_[i], work, {});
      });
    results[0] = send_pieces(*senders_[0], work, tick);
  }
  for (const Result& result : results) {
    SCONCE_CHECK(result.file <= 0, kIo, "cannot read a file of weights: ", std::strerror(result.file));
    SCONCE_CHECK(result.file == 0, kFailedPrecondition, "a file of weights became shorter while it was read");
    check(result.device, "the upload of constants");
  }
}

}  // namespace sconce::cuda
