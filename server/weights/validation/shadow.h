// Shadow: runs a share of a model's live requests on its staged set too, after their answers were sent, and compares
// the answers. It has a thread of the lowest priority, which starts a run only while no request of the model waits.
//
// It looks at the answers while a set is staged and the share is more than 0. Whoever changes the model's weights says
// so before and after: weights_change() and weights_settled(). Its results stay until the next set is staged.
//
// Thread-safe. No function waits for a run, except the destructor.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "sconce/model.h"
#include "sconce/mutex.h"
#include "server/scheduling/signature/model_signature.h"
#include "server/weights/validation/answer_difference.h"
#include "server/weights/validation/answer_tap.h"
#include "server/weights/validation/shadow_queue.h"

namespace sconce::server {

// Times of the last kMost runs.
class RunTimes {
 public:
  static constexpr size_t kMost = 1024;
  void add(std::chrono::nanoseconds time) noexcept {
    times_[next_++ % kMost] = time;
    sum_ += time;
  }
  uint64_t count() const noexcept { return next_; }
  std::chrono::nanoseconds mean() const noexcept;  // of all
  // of: 0 to 1, of the last ones. Zero if there is none.
  std::chrono::nanoseconds quantile(double of) const;

 private:
  std::array<std::chrono::nanoseconds, kMost> times_{};
  std::chrono::nanoseconds sum_{};
  uint64_t next_ = 0;
};

// What the live requests showed of one staged set.
struct ShadowSummary {
  std::string label, digest;                    // of the staged set; digest: "" without libcrypto
  std::chrono::system_clock::time_point since;  // when it was staged
  uint64_t beside = 0;                          // the generation whose answers it was compared with
  // Requests; ShadowCounts says what each means.
  uint64_t compared = 0, failed = 0, busy = 0, full = 0, placed = 0, ended = 0;
  std::string first_failure;              // of the runs that failed
  std::vector<OutputDifference> outputs;  // in the model's order
  // Of the same requests. Only of those whose live run was for one request alone, and not of the set's first run.
  RunTimes live, staged;
  uint64_t skipped() const noexcept { return busy + full + placed + ended; }
};

class Shadow {
 public:
  enum class State : int8_t {
    kOff,       // the share is 0
    kRefused,   // the model cannot be shadowed
    kWaiting,   // nothing is staged
    kStarting,  // the set gets a replica of its own
    kRunning,
    kPaused,  // weights or replicas are being changed
    kFailed,  // the set got no replica
  };
  struct Report {
    double share = 0;
    State state = State::kOff;
    std::string reason;                    // with kRefused and kFailed
    std::optional<ShadowSummary> summary;  // of the set that is staged, or was staged last
  };

  // waiting: how many requests wait for a run. memory: for the copies of requests, as in ShadowQueue. All arguments
  // outlive this object.
  Shadow(const Model& model, const ModelSignature& interface, AnswerTap& answers, std::function<int64_t()> waiting,
         double share, uint64_t memory);
  ~Shadow();
  Shadow(const Shadow&) = delete;
  Shadow& operator=(const Shadow&) = delete;

  double share() const noexcept { return share_.load(std::memory_order_relaxed); }
  // kInvalidArgument unless it is from 0 to 1; kFailedPrecondition for a model that cannot be shadowed.
  void set_share(double share);

  void weights_change() noexcept;
  void weights_settled() noexcept;

  Report report() const;

  // Sums over all sets, for metrics. Takes no lock.
  struct Totals {
    uint64_t compared = 0, skipped = 0, failed = 0;
    uint64_t other_argmax = 0, new_nonfinite = 0;  // answers with an output of that kind
    double largest = 0;                            // difference, of the set that is staged, or was staged last
  };
  Totals totals() const noexcept;

 private:
  struct Sums;   // over all sets
  struct Trial;  // one staged set beside one active set

  void look() SCONCE_REQUIRES(mutex_);
  void start() SCONCE_REQUIRES(mutex_);
  void stop() noexcept SCONCE_REQUIRES(mutex_);
  static void work(const Model& model, Trial& trial, ShadowQueue& queue, Sums& sums) noexcept;

  const Model& model_;
  const ModelSignature& interface_;
  AnswerTap& answers_;
  const std::function<int64_t()> waiting_;
  const uint64_t memory_;
  const std::string refusal_;  // why the model cannot be shadowed; empty: it can
  const std::unique_ptr<Sums> sums_;
  std::atomic<double> share_;

  mutable Mutex mutex_;
  bool changing_ SCONCE_GUARDED_BY(mutex_) = false;
  std::string problem_ SCONCE_GUARDED_BY(mutex_);                 // why no thread was started
  std::shared_ptr<Trial> trial_ SCONCE_GUARDED_BY(mutex_);        // the last one; null: there was none
  std::shared_ptr<ShadowQueue> queue_ SCONCE_GUARDED_BY(mutex_);  // null: answers are not looked at
  std::thread thread_ SCONCE_GUARDED_BY(mutex_);                  // of the last queue; joins the one before
};

const char* state_name(Shadow::State state) noexcept;

}  // namespace sconce::server
