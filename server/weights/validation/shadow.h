// Shadow: runs a share of a model's live requests on its staged weight set too, after their answers were sent, and
// compares the answers. Its thread has the lowest priority and starts a run only while no request of the model waits.
//
// It watches the answers while a set is staged and the share is above 0. A caller that changes the model's weights
// calls weights_change() before and weights_settled() after the change. The results are kept until the next set is
// staged.
//
// Thread-safe. Only the destructor waits for a run.
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

namespace sconce::server::weights {

// Times of the last kMost runs.
class RunTimes {
 public:
  static constexpr size_t kMost = 1024;
  void add(std::chrono::nanoseconds time) noexcept {
    times_[next_++ % kMost] = time;
    sum_ += time;
  }
  uint64_t count() const noexcept { return next_; }
  std::chrono::nanoseconds mean() const noexcept;  // over all runs
  // of: 0 to 1, over the last kMost runs. Zero if there are none.
  std::chrono::nanoseconds quantile(double of) const;

 private:
  std::array<std::chrono::nanoseconds, kMost> times_{};
  std::chrono::nanoseconds sum_{};
  uint64_t next_ = 0;
};

// The results of one staged set on live requests.
struct ShadowSummary {
  std::string label, digest;                    // of the staged set; digest: "" without libcrypto
  std::chrono::system_clock::time_point since;  // time of staging
  uint64_t beside = 0;                          // the weight version whose answers were compared
  // Numbers of requests, by outcome; see ShadowCounts.
  uint64_t compared = 0, failed = 0, busy = 0, full = 0, placed = 0, ended = 0;
  std::string first_failure;              // reason of the first failed run
  std::vector<OutputDifference> outputs;  // in the model's order
  // Times of the same requests. Only requests whose live run was for one request alone count, and the first run of the
  // set does not.
  RunTimes live, staged;
  uint64_t skipped() const noexcept { return busy + full + placed + ended; }
};

class Shadow {
 public:
  enum class State : int8_t {
    kOff,       // the share is 0
    kRefused,   // the model cannot be shadowed
    kWaiting,   // nothing is staged
    kStarting,  // a replica is being created for the set
    kRunning,
    kPaused,  // weights or replicas are being changed
    kFailed,  // no replica could be created for the set
  };
  struct Report {
    double share = 0;
    State state = State::kOff;
    std::string reason;                    // for kRefused and kFailed
    std::optional<ShadowSummary> summary;  // of the current or last staged set
  };

  // waiting: number of requests that wait for a run. memory: for copies of requests, as in ShadowQueue. All arguments
  // outlive this object.
  Shadow(const Model& model, const scheduling::ModelSignature& interface, AnswerTap& answers,
         std::function<int64_t()> waiting, double share, uint64_t memory);
  ~Shadow();
  Shadow(const Shadow&) = delete;
  Shadow& operator=(const Shadow&) = delete;

  double share() const noexcept { return share_.load(std::memory_order_relaxed); }
  // kInvalidArgument unless the share is from 0 to 1; kFailedPrecondition for a model that cannot be shadowed.
  void set_share(double share);

  void weights_change() noexcept;
  void weights_settled() noexcept;

  Report report() const;

  // Sums over all sets, for metrics. Takes no lock.
  struct Totals {
    uint64_t compared = 0, skipped = 0, failed = 0;
    uint64_t other_argmax = 0, new_nonfinite = 0;  // answers with such an output
    double largest = 0;                            // the largest difference of the current or last staged set
  };
  Totals totals() const noexcept;

 private:
  struct Sums;   // over all sets
  struct Trial;  // one staged set and the active set it is compared with

  void look() SCONCE_REQUIRES(mutex_);
  void start() SCONCE_REQUIRES(mutex_);
  void stop() noexcept SCONCE_REQUIRES(mutex_);
  static void work(const Model& model, Trial& trial, ShadowQueue& queue, Sums& sums) noexcept;

  const Model& model_;
  const scheduling::ModelSignature& interface_;
  AnswerTap& answers_;
  const std::function<int64_t()> waiting_;
  const uint64_t memory_;
  const std::string refusal_;  // why the model cannot be shadowed; empty: it can be
  const std::unique_ptr<Sums> sums_;
  std::atomic<double> share_;

  mutable Mutex mutex_;
  bool changing_ SCONCE_GUARDED_BY(mutex_) = false;
  std::string problem_ SCONCE_GUARDED_BY(mutex_);                 // reason for which the thread was not started
  std::shared_ptr<Trial> trial_ SCONCE_GUARDED_BY(mutex_);        // the last one; null: there was none
  std::shared_ptr<ShadowQueue> queue_ SCONCE_GUARDED_BY(mutex_);  // null: answers are not watched
  std::thread thread_ SCONCE_GUARDED_BY(mutex_);                  // of the last queue; it joins the previous thread
};

const char* state_name(Shadow::State state) noexcept;

}  // namespace sconce::server::weights
