// OperationLog: running and recent weight updates. Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sconce/model.h"
#include "sconce/mutex.h"
#include "sconce/weight_sources.h"
#include "server/support/failure.h"
#include "server/telemetry/update_counters.h"

namespace sconce::server::rollout {

// One weight update, shown by GET /v2/admin/operations/ID.
class Operation {
 public:
  using Clock = std::chrono::steady_clock;
  enum class State : int8_t { kRunning, kDone, kFailed, kCancelled };
  enum class Phase : int8_t { kStarting, kReceiving, kFolding, kJudging, kCommitting, kOver };
  enum class Outcome : int8_t { kNone, kChecked, kStaged, kActive, kNotServing };  // kNotServing: a named set

  Operation(uint64_t id, std::string model, int64_t version, std::string label, std::vector<ReplicaInfo> replicas)
      : id(id), model(std::move(model)), version(version), label(std::move(label)) {
    for (const ReplicaInfo& replica : replicas) replicas_.push_back({replica.index, replica.device});
  }

  const uint64_t id;
  const std::string model;
  const int64_t version;
  const std::string label;

  // The traceparent field of the request that started it.
  void set_traceparent(std::string field);
  // Called by the operation's thread.
  void enter(Phase phase) noexcept;
  void expect_bytes(uint64_t bytes) noexcept { total_.store(bytes, std::memory_order_relaxed); }
  // A replica's new model instance is being created, or is ready.
  void advance(int replica, bool ready) noexcept;
  void add_bytes(uint64_t bytes) noexcept { bytes_.fetch_add(bytes, std::memory_order_relaxed); }
  // Adds the times for opening a trainer's shared memory and for copying its values to the set.
  void add_shared(Clock::duration opening, Clock::duration copying) noexcept;
  void end(Outcome outcome, uint64_t weight_version) noexcept;
  // Call this before end(), for a published set.
  void tell_stored(bool stored, std::string problem) noexcept;
  // Call this before end(). verdict: of golden requests, as JSON.
  void tell_golden(std::string verdict) noexcept;
  void end(Failure failure) noexcept;
  // kCancelled if the operation was cancelled.
  void check_cancelled() const;

  void cancel(std::string reason);
  const std::atomic<bool>& cancelled() const noexcept { return cancelled_; }
  // Makes the operation count the bytes that are read from a file, and stop the reading when it is cancelled. The
  // operation must outlive the options.
  void follow(FileOptions& options);

  struct Replica {
    enum class State : int8_t { kWaiting, kFolding, kReady };
    int index;
    Device device;
    State state = State::kWaiting;
    double seconds = 0;  // of folding
    Clock::time_point begin{};
  };
  static constexpr size_t kPhases = static_cast<size_t>(Phase::kOver);
  struct View {
    State state;
    Phase phase;
    std::array<double, kPhases> phase_seconds;  // index: Phase
    double opening_s, copying_s;                // for memory that a trainer shares
    uint64_t bytes, total;
    double seconds;
    double seconds_over;  // since the end; 0 while running
    Outcome outcome;
    uint64_t weight_version;     // for kActive
    std::optional<bool> stored;  // whether the set is on disk; nullopt: no store
    std::string store_problem;
    std::string golden;  // from tell_golden(); empty: none
    int status;          // for kFailed and kCancelled
    std::string error;
    std::vector<Replica> replicas;  // when the operation started
    std::string traceparent;
  };
  View view() const;
  State state() const noexcept;
  bool over() const noexcept { return state() != State::kRunning; }

 private:
  void pass_to(Phase phase) noexcept SCONCE_REQUIRES(mutex_);

  const Clock::time_point start_ = Clock::now();
  std::atomic<uint64_t> bytes_{0}, total_{0};
  std::atomic<bool> cancelled_{false};
  mutable Mutex mutex_;
  std::string cancel_reason_ SCONCE_GUARDED_BY(mutex_);
  State state_ SCONCE_GUARDED_BY(mutex_) = State::kRunning;
  Phase phase_ SCONCE_GUARDED_BY(mutex_) = Phase::kStarting;
  Clock::time_point entered_ SCONCE_GUARDED_BY(mutex_) = start_;
  std::array<Clock::duration, kPhases> spent_ SCONCE_GUARDED_BY(mutex_){};
  Clock::duration opening_ SCONCE_GUARDED_BY(mutex_){}, copying_ SCONCE_GUARDED_BY(mutex_){};
  Outcome outcome_ SCONCE_GUARDED_BY(mutex_) = Outcome::kNone;
  uint64_t weight_version_ SCONCE_GUARDED_BY(mutex_) = 0;
  int status_ SCONCE_GUARDED_BY(mutex_) = 200;
  std::string error_ SCONCE_GUARDED_BY(mutex_);
  std::optional<bool> stored_ SCONCE_GUARDED_BY(mutex_);
  std::string store_problem_ SCONCE_GUARDED_BY(mutex_), golden_ SCONCE_GUARDED_BY(mutex_);
  std::string traceparent_ SCONCE_GUARDED_BY(mutex_);
  std::vector<Replica> replicas_ SCONCE_GUARDED_BY(mutex_);
  Clock::time_point end_ SCONCE_GUARDED_BY(mutex_){};
};

const char* state_name(Operation::State state) noexcept;  // "running"
const char* phase_name(Operation::Phase phase) noexcept;  // "receiving"

class OperationLog {
 public:
  // counters: outlives the log.
  explicit OperationLog(telemetry::UpdateCounters& counters) : counters_(counters) {}
  OperationLog(const OperationLog&) = delete;
  OperationLog& operator=(const OperationLog&) = delete;

  // Creates a record. The last kMaxFinished finished records are kept.
  std::shared_ptr<Operation> open(std::string model, int64_t version, std::string label,
                                  std::vector<ReplicaInfo> replicas);
  std::shared_ptr<Operation> find(uint64_t id) const;  // kNotFound
  std::vector<std::shared_ptr<Operation>> list() const;

  void count(const Operation& over) noexcept;
  // Called by count(). Set it before the first operation.
  void on_end(std::function<void(const Operation& over)> told) { told_ = std::move(told); }

  // Cancels running operations. Each continues until it checks for cancellation.
  void cancel_all(const std::string& reason);
  // Likewise at shutdown; operations that are opened later are cancelled too.
  void stop();
  // Whether cancel_all() or stop() was called.
  bool stopping() const noexcept { return ending_.load(std::memory_order_relaxed); }

 private:
  static constexpr size_t kMaxFinished = 64;

  telemetry::UpdateCounters& counters_;
  std::function<void(const Operation&)> told_;
  std::atomic<bool> ending_{false};
  mutable Mutex mutex_;
  bool stopping_ SCONCE_GUARDED_BY(mutex_) = false;
  uint64_t last_id_ SCONCE_GUARDED_BY(mutex_) = 0;
  std::deque<std::shared_ptr<Operation>> records_ SCONCE_GUARDED_BY(mutex_);
};

}  // namespace sconce::server::rollout
