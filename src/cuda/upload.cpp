#include "src/cuda/upload.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "src/cuda/error.h"

namespace sconce::cuda {
namespace {

constexpr size_t kPiece = 2 << 20;
constexpr size_t kBytesOfThread = 16 << 20;  // fewer are sent sooner than another thread starts
constexpr size_t kMaxThreads = 8;

#define SCONCE_RETURN_ERROR(expression) \
  if (const cudaError_t error = (expression); error != cudaSuccess) return error

}  // namespace

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

cudaError_t Uploader::send_pieces(Sender& sender, std::span<const Piece> pieces, std::atomic<size_t>& next,
                                  cudaEvent_t begin) {
  SCONCE_RETURN_ERROR(open(sender));
  SCONCE_RETURN_ERROR(cudaStreamWaitEvent(sender.stream, begin));
  for (size_t turn = 0;; turn ^= 1) {
    const size_t i = next.fetch_add(1, std::memory_order_relaxed);
    if (i >= pieces.size()) break;
    SCONCE_RETURN_ERROR(cudaEventSynchronize(sender.sent[turn]));
    std::memcpy(sender.pinned[turn], pieces[i].from, pieces[i].bytes);
    SCONCE_RETURN_ERROR(
        cudaMemcpyAsync(pieces[i].to, sender.pinned[turn], pieces[i].bytes, cudaMemcpyHostToDevice, sender.stream));
    SCONCE_RETURN_ERROR(cudaEventRecord(sender.sent[turn], sender.stream));
  }
  return cudaStreamSynchronize(sender.stream);
}

void Uploader::send(std::span<const Upload> uploads, cudaStream_t stream) {
  std::vector<Piece> pieces;
  size_t total = 0;
  for (const Upload& upload : uploads) {
    total += upload.from.size();
    for (size_t at = 0; at < upload.from.size(); at += kPiece)
      pieces.push_back({upload.from.data() + at, static_cast<std::byte*>(upload.to) + at,
                        std::min(kPiece, upload.from.size() - at)});
  }
  if (pieces.empty()) return;
  const size_t cores = std::max(1u, std::thread::hardware_concurrency());
  const size_t threads = std::clamp<size_t>(total / kBytesOfThread, 1, std::min(kMaxThreads, (cores + 1) / 2));

  const std::lock_guard lock(mutex_);
  if (!begin_) SCONCE_CUDA(cudaEventCreateWithFlags(&begin_, cudaEventDisableTiming));
  SCONCE_CUDA(cudaEventRecord(begin_, stream));
  while (senders_.size() < threads) senders_.push_back(std::make_unique<Sender>());
  std::atomic<size_t> next{0};
  std::vector<cudaError_t> results(threads, cudaSuccess);
  {
    std::vector<std::jthread> helpers;  // joined before anything they use goes, whatever happens
    helpers.reserve(threads - 1);
    for (size_t i = 1; i < threads; ++i)
      helpers.emplace_back([&, i] {
        results[i] = cudaSetDevice(device_);
        if (results[i] == cudaSuccess) results[i] = send_pieces(*senders_[i], pieces, next, begin_);
      });
    results[0] = send_pieces(*senders_[0], pieces, next, begin_);
  }
  for (const cudaError_t result : results) check(result, "the upload of constants");
}

}  // namespace sconce::cuda
