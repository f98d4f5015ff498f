// ShadowQueue: copies of a share of a model's answered requests, for the thread that runs them on other weights. I/O
// threads fill it without locks or waiting; they allocate only until the queue's memory has grown to the size of the
// requests. Requests that do not fit are counted and dropped. Thread-safe; one thread takes the requests.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "server/support/memory/request_memory.h"
#include "server/weights/validation/answer_tap.h"

namespace sconce::server::weights {

// Outcomes of the selected requests. Each request ends in exactly one of these, or is still in the queue.
class ShadowCounts {
 public:
  enum What : int8_t {
    kCompared,
    kFailed,  // the other weights could not answer
    kBusy,    // skipped, because live requests waited for a run
    kFull,    // skipped, because earlier copies wait, the request is too large, or there is no memory
    kPlaced,  // skipped, because some of its tensors are on a device, or packed
    kEnded,   // skipped, because the other weights were removed before its run
  };
  // sums: raised together with these counts; outlives this object; null: none.
  explicit ShadowCounts(ShadowCounts* sums = nullptr) noexcept : sums_(sums) {}
  void raise(What what) noexcept {
    counts_[what].fetch_add(1, std::memory_order_relaxed);
    if (sums_ != nullptr) sums_->raise(what);
  }
  uint64_t operator[](What what) const noexcept { return counts_[what].load(std::memory_order_relaxed); }
  uint64_t skipped() const noexcept { return (*this)[kBusy] + (*this)[kFull] + (*this)[kPlaced] + (*this)[kEnded]; }

 private:
  ShadowCounts* const sums_;
  std::array<std::atomic<uint64_t>, kEnded + 1> counts_{};
};

class ShadowQueue final : public AnswerWatcher {
 public:
  static constexpr size_t kMaxRequests = 4;

  struct Request {
    std::vector<Tensor> inputs, outputs;  // outputs row-major
    std::chrono::nanoseconds compute{};
    bool alone = true;  // `compute` is the time of a run for this request alone
    TensorScratch memory{};
  };

  // weight_version: selects answers of this weight version only. share: the share of them that is selected, from 0
  // to 1. memory: bytes for all requests in the queue together; each request may take an equal part, so that no request
  // excludes others, and the copy does not block the I/O thread for long. waiting: number of requests that wait for a
  // run of the model. Nothing is selected before open().
  ShadowQueue(uint64_t weight_version, double share, uint64_t memory, std::function<int64_t()> waiting,
              std::shared_ptr<ShadowCounts> counts);

  void set_share(double share) noexcept;
  void open() noexcept;
  // From now on nothing is selected, and next() returns null.
  void close() noexcept;
  bool opened() const noexcept { return state_ == State::kOpen; }
  bool closed() const noexcept { return state_ == State::kClosed; }

  void saw(const SeenAnswer& answer) noexcept override;

  // Waits for a request, then until no live request waits for a run of the model. Null: the queue is closed.
  Request* next() noexcept;
  void done(Request& request) noexcept;

 private:
  enum class State : int8_t { kNew, kOpen, kClosed };
  enum class Use : int8_t { kFree, kFilling, kFull, kTaken };
  struct Place {
    std::atomic<Use> use{Use::kFree};
    uint64_t number = 0;  // sequence number of the request
    Request request;
  };

  bool pick() noexcept;
  std::optional<ShadowCounts::What> add(const SeenAnswer& answer);
  static void copy(const SeenAnswer& answer, Request& to);
  Place* oldest() noexcept;
  void wake() noexcept;

  const uint64_t weight_version_;
  const uint64_t most_bytes_;  // of one request
  const std::function<int64_t()> waiting_;
  const std::shared_ptr<ShadowCounts> counts_;
  std::atomic<State> state_{State::kNew};
  std::atomic<uint64_t> share_;    // times 2^32
  std::atomic<uint64_t> seen_{0};  // answers
  std::atomic<uint64_t> added_{0};
  std::atomic<uint32_t> changes_{0};  // next() waits for a change
  std::array<Place, kMaxRequests> places_;
};

}  // namespace sconce::server::weights
