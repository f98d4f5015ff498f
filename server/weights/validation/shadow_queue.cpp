#include "server/weights/validation/shadow_queue.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <thread>
#include <utility>

#include "server/support/failure.h"

namespace sconce::server::weights {
namespace {

constexpr double kWhole = 4294967296.0;  // 2^32

uint64_t scaled(double share) noexcept { return static_cast<uint64_t>(std::llround(share * kWhole)); }

size_t span_of(const Tensor& tensor) {
  return storage_bytes_needed(tensor.sizes(), tensor.strides(), 0, tensor.itemsize());
}

// The model may require the input's strides.
Tensor copy_with_strides(const Tensor& tensor, TensorScratch& memory) {
  const size_t bytes = span_of(tensor);
  const TensorScratch::Piece piece = memory.allocate(bytes);
  if (bytes != 0) std::memcpy(piece.data, tensor.data(), bytes);
  return memory.over(piece.storage, piece.data, tensor.dtype(), tensor.sizes(), tensor.strides());
}

Tensor copy_row_major(const Tensor& tensor, TensorScratch& memory) {
  Tensor copy = memory.tensor(tensor.sizes(), tensor.dtype());
  if (tensor.numel() != 0) copy_to_contiguous(tensor, static_cast<std::byte*>(copy.data()));
  return copy;
}

}  // namespace

ShadowQueue::ShadowQueue(uint64_t weight_version, double share, uint64_t memory, std::function<int64_t()> waiting,
                         std::shared_ptr<ShadowCounts> counts)
    : weight_version_(weight_version),
      most_bytes_(memory / kMaxRequests),
      waiting_(std::move(waiting)),
      counts_(std::move(counts)),
      share_(scaled(share)) {}

void ShadowQueue::set_share(double share) noexcept { share_ = scaled(share); }

void ShadowQueue::open() noexcept {
  State fresh = State::kNew;
  state_.compare_exchange_strong(fresh, State::kOpen);
}

void ShadowQueue::close() noexcept {
  state_ = State::kClosed;
  wake();
}

void ShadowQueue::wake() noexcept {
  changes_.fetch_add(1);
  changes_.notify_one();
}

// Spreads the selected requests evenly: a request is selected when the sum of the shares passes a whole number.
bool ShadowQueue::pick() noexcept {
  const uint64_t share = share_.load(std::memory_order_relaxed);
  const uint64_t sum = seen_.fetch_add(1, std::memory_order_relaxed) * share;
  return (sum & 0xffffffff) + share > 0xffffffff;
}

void ShadowQueue::copy(const SeenAnswer& answer, Request& to) {
  to.inputs.clear();
  to.outputs.clear();
  to.memory.reset();
  for (const Tensor& input : answer.inputs) to.inputs.push_back(copy_with_strides(input, to.memory));
  for (const Tensor& output : answer.outputs)
    to.outputs.push_back(output.defined() ? copy_row_major(output, to.memory) : Tensor());
  to.compute = answer.info.compute;
  to.alone = answer.ran_alone;
}

void ShadowQueue::saw(const SeenAnswer& answer) noexcept {
  if (state_.load(std::memory_order_relaxed) != State::kOpen || answer.info.set ||
      answer.info.weight_version != weight_version_ || !pick())
    return;
  std::optional<ShadowCounts::What> skipped = ShadowCounts::kFull;
  succeeds([&] { skipped = add(answer); });
  skipped ? counts_->raise(*skipped) : wake();
}

// Returns the reason for skipping the request; nullopt: it is not skipped.
std::optional<ShadowCounts::What> ShadowQueue::add(const SeenAnswer& answer) {
  if (waiting_() > 0) return ShadowCounts::kBusy;
  if (!on_host(answer.inputs) || !on_host(answer.outputs)) return ShadowCounts::kPlaced;
  size_t bytes = 0;
  for (const Tensor& input : answer.inputs) bytes += span_of(input);
  for (const Tensor& output : answer.outputs) bytes += output.defined() ? output.bytes() : 0;
  if (bytes > most_bytes_) return ShadowCounts::kFull;
  for (Place& place : places_) {
    Use free = Use::kFree;
    if (!place.use.compare_exchange_strong(free, Use::kFilling)) continue;
    if (!succeeds([&] { copy(answer, place.request); })) {  // no memory
      place.use = Use::kFree;
      break;
    }
    place.number = added_.fetch_add(1, std::memory_order_relaxed);
    place.use = Use::kFull;
    // A closed queue may not be polled again.
    Use full = Use::kFull;
    if (closed() && place.use.compare_exchange_strong(full, Use::kFree)) return ShadowCounts::kEnded;
    return std::nullopt;
  }
  return ShadowCounts::kFull;
}

ShadowQueue::Place* ShadowQueue::oldest() noexcept {
  Place* found = nullptr;
  for (Place& place : places_)
    if (place.use == Use::kFull && (found == nullptr || place.number < found->number)) found = &place;
  return found;
}

ShadowQueue::Request* ShadowQueue::next() noexcept {
  for (;;) {
    const uint32_t changes = changes_;
    Place* const place = oldest();
    if (closed()) break;
    if (place == nullptr) {
      changes_.wait(changes);
      continue;
    }
    if (waiting_() > 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      continue;
    }
    Use full = Use::kFull;
    if (place->use.compare_exchange_strong(full, Use::kTaken)) return &place->request;
  }
  for (Place& place : places_) {
    Use full = Use::kFull;
    if (place.use.compare_exchange_strong(full, Use::kFree)) counts_->raise(ShadowCounts::kEnded);
  }
  return nullptr;
}

void ShadowQueue::done(Request& request) noexcept {
  for (Place& place : places_)
    if (&place.request == &request) place.use = Use::kFree;
}

}  // namespace sconce::server::weights
