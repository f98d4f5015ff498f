// Operations: what the admin port does on threads of its own, so that neither a slow client nor a long fold holds up
// anything else, and the record of the updates that run or ran lately. Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "sconce/model.h"
#include "server/base/failure.h"
#include "server/observe/update_counters.h"

namespace sconce {

// One weight update, as GET /v2/admin/operations/ID shows it.
class Operation {
 public:
  using Clock = std::chrono::steady_clock;
  enum class State : int8_t { kRunning, kDone, kFailed, kCancelled };
  enum class Phase : int8_t { kStarting, kReceiving, kFolding, kCommitting, kOver };
  enum class Outcome : int8_t { kNone, kChecked, kStaged, kActive };

  Operation(uint64_t id, std::string model, int64_t version, std::string label, std::vector<ReplicaInfo> replicas)
      : id(id), model(std::move(model)), version(version), label(std::move(label)) {
    for (const ReplicaInfo& replica : replicas) replicas_.push_back({replica.index, replica.device});
  }

  const uint64_t id;
  const std::string model;
  const int64_t version;
  const std::string label;

  // Of the operation's thread.
  void enter(Phase phase) noexcept { phase_.store(phase, std::memory_order_relaxed); }
  void expect_bytes(uint64_t bytes) noexcept { total_.store(bytes, std::memory_order_relaxed); }
  // A replica's new container is begun, or ready.
  void advance(int replica, bool ready) noexcept;
  void add_bytes(uint64_t bytes) noexcept { bytes_.fetch_add(bytes, std::memory_order_relaxed); }
  void end(Outcome outcome, uint64_t generation) noexcept;
  void end(Failure failure) noexcept;
  // kCancelled if it was asked for.
  void check_cancelled() const;

  void cancel(std::string reason);
  const std::atomic<bool>& cancelled() const noexcept { return cancelled_; }

  struct Replica {
    enum class State : int8_t { kWaiting, kFolding, kReady };
    int index;
    Device device;
    State state = State::kWaiting;
    double seconds = 0;  // of the folding
    Clock::time_point begin{};
  };
  struct View {
    State state;
    Phase phase;
    uint64_t bytes, total;
    double seconds;
    Outcome outcome;
    uint64_t generation;  // of kActive
    int status;           // of kFailed and kCancelled
    std::string error;
    std::vector<Replica> replicas;  // as the operation began
  };
  View view() const;
  State state() const noexcept;
  bool over() const noexcept { return state() != State::kRunning; }

 private:
  const Clock::time_point start_ = Clock::now();
  std::atomic<Phase> phase_{Phase::kStarting};
  std::atomic<uint64_t> bytes_{0}, total_{0};
  std::atomic<bool> cancelled_{false};
  mutable std::mutex mutex_;  // the rest
  std::string cancel_reason_;
  State state_ = State::kRunning;
  Outcome outcome_ = Outcome::kNone;
  uint64_t generation_ = 0;
  int status_ = 200;
  std::string error_;
  std::vector<Replica> replicas_;
  Clock::time_point end_{};
};

class Operations {
 public:
  Operations() = default;
  Operations(const Operations&) = delete;
  Operations& operator=(const Operations&) = delete;
  ~Operations() { stop(); }

  // Runs `work` on a thread of its own; if that throws, `failed`; if that throws too, for want of memory, `abandoned`,
  // which must not. kUnavailable if too many run, or after stop().
  void run(std::function<void()> work, std::function<void(const std::exception_ptr&)> failed,
           std::function<void()> abandoned);

  // A new record. Of those that are over, the last kKept are kept.
  std::shared_ptr<Operation> open(std::string model, int64_t version, std::string label,
                                  std::vector<ReplicaInfo> replicas);
  std::shared_ptr<Operation> find(uint64_t id) const;  // kNotFound
  std::vector<std::shared_ptr<Operation>> list() const;

  const UpdateCounters& counters() const noexcept { return counters_; }
  void count(const Operation& over) noexcept;

  // While it lives nobody else changes the weights or replicas of `model` through here. kBusy names who does.
  class Claim {
   public:
    Claim(Operations& operations, const void* model, std::string what);
    ~Claim();
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;

   private:
    Operations& operations_;
    const void* const model_;
  };

  // Cancels what runs; what is not over goes on until it sees that.
  void cancel_all(const std::string& reason);
  // Cancels, waits for all threads, starts no more.
  void stop();

 private:
  static constexpr size_t kMost = 128, kKept = 64;
  using Threads = std::list<std::thread>;

  UpdateCounters counters_;
  mutable std::mutex mutex_;  // all below
  std::condition_variable ended_;
  Threads threads_, joinable_;
  bool stopping_ = false;
  uint64_t last_id_ = 0;
  std::deque<std::shared_ptr<Operation>> records_;
  std::map<const void*, std::string> claims_;
};

}  // namespace sconce
