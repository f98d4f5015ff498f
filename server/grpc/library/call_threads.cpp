#include "server/grpc/library/call_threads.h"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <utility>

#include "server/http/connections/busy_poll.h"

namespace sconce::server::rpc {
namespace {

using Clock = CallThreads::Clock;
constexpr std::chrono::microseconds kPeriod{500};  // interval at which a thread evaluates its load
constexpr int kBusy = 65;                          // percent of a period: the leader needs help if events are queued
constexpr uint32_t kTogether = 6;                  // events are queued if this many arrive together, on average
constexpr int kIdle = 35;                          // percent: a helper leaves below this
constexpr int kFull = 90;                          // percent: a helper needs help above this
constexpr std::chrono::milliseconds kStay{1};      // how long a helper waits for an event
constexpr std::chrono::milliseconds kLook{1};      // interval of checking whether all threads are blocked
constexpr int kQuietLooks = 20;                    // checks without any step until checking stops
constexpr std::chrono::microseconds kLong{100};    // for a longer step another thread takes over the queue
constexpr std::chrono::milliseconds kRest{500};    // idle time after which a thread returns free memory
// Polling for busy_poll pays if the next event comes within this multiple of it; after a sleep, the time includes
// waking the leader.
constexpr int kWorth = 2;

int cores() noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? std::max(CPU_COUNT(&set), 1) : 1;
}

gpr_timespec grpc_time(Clock::time_point time) noexcept {
  if (time == Clock::time_point::max()) return gpr_inf_future(GPR_CLOCK_MONOTONIC);
  return gpr_time_from_nanos(std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count(),
                             GPR_CLOCK_MONOTONIC);
}

Clock::duration thread_time() noexcept {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace

// One thread's measurements of its events.
struct CallThreads::Poll {
  void* tag = nullptr;
  bool ok = false;
  Clock::time_point now = Clock::now(), begin = now;
  Clock::duration step{};  // moving average of steps

  // Whether a period is over.
  bool is_over() const noexcept { return now - begin >= kPeriod; }
  int64_t percent(Clock::duration part) const noexcept { return 100 * part / (now - begin); }
};

CallThreads::CallThreads(grpc::CompletionQueue& queue, GrpcHost& host, std::chrono::nanoseconds busy_poll)
    : queue_(queue),
      host_(host),
      // On a single core, polling prevents clients from running.
      busy_poll_(cores() < 2 ? std::chrono::nanoseconds(0) : busy_poll),
      most_(std::clamp(cores() / 2, 2, 16)) {}

void CallThreads::start() {
  threads_.reserve(static_cast<size_t>(most_));
  threads_.emplace_back([this] { lead(); });
  for (int i = 1; i < most_; ++i) threads_.emplace_back([this] { follow(); });
}

void CallThreads::stop() noexcept {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

CallThreads::Next CallThreads::next(Poll& poll, Clock::time_point until) noexcept {
  // A time in the past: gRPC polls once and does not wait.
  const Next next = queue_.AsyncNext(&poll.tag, &poll.ok, grpc_time(until));
  poll.now = Clock::now();
  return next;
}

void CallThreads::lead() noexcept {
  Poll poll;
  http::BusyPoll busy(kWorth * busy_poll_);
  Clock::time_point empty_at = poll.now;
  Clock::time_point waited{};  // a clock that is stopped while there are events
  Clock::duration idle{};
  uint32_t events = 0, waits = 0;  // of the period, like idle
  bool rested = true, found_nothing = false;
  for (;;) {
    const bool alone = active_.load(std::memory_order_relaxed) == 1;
    Next found = alone ? next(poll, {}) : Next::TIMEOUT;
    if (found == Next::TIMEOUT) {
      if (!std::exchange(found_nothing, true)) {
        empty_at = poll.now;
        ++waits;
      }
      if (alone && waiting_.load(std::memory_order_relaxed) == 0 && busy.pays()) {
        if (poll.now - empty_at < busy_poll_) {
          std::this_thread::yield();
          continue;
        }
        busy.again(Clock::time_point::max());  // in vain
      }
      found = next(poll, rested ? Clock::time_point::max() : poll.now + kRest);
      if (found == Next::TIMEOUT) {
        rested = true;
        host_.rest();
        continue;
      }
    }
    if (found == Next::SHUTDOWN) return;
    rested = false;
    if (std::exchange(found_nothing, false)) {
      idle += poll.now - empty_at;
      busy.came(waited += poll.now - empty_at);
    }
    ++events;
    if (poll.is_over()) {
      if (alone && poll.percent(idle) < 100 - kBusy && events >= kTogether * waits) call_one();
      poll.begin = poll.now;
      idle = {};
      events = waits = 0;
    }
    leader_works_.store(true, std::memory_order_relaxed);
    step(poll);
    leader_works_.store(false, std::memory_order_relaxed);
  }
}

void CallThreads::follow() noexcept {
  while (wait_for_call()) {
    help();
    active_.fetch_sub(1, std::memory_order_relaxed);
  }
}

void CallThreads::help() noexcept {
  Poll poll;
  Clock::duration ran = thread_time();
  for (;;) {
    const Next found = next(poll, poll.now + kStay);
    if (found == Next::SHUTDOWN) return;
    if (found == Next::GOT_EVENT) step(poll);
    if (!poll.is_over()) continue;
    // gRPC reads and writes within next(), so the duration of next() is not idle time.
    const Clock::duration before = std::exchange(ran, thread_time());
    const int64_t busy = poll.percent(ran - before);
    if (busy < kIdle && !leader_works_.load(std::memory_order_relaxed)) return;
    if (busy > kFull) call_one();
    poll.begin = poll.now;
  }
}

void CallThreads::step(Poll& poll) noexcept {
  if (!awake_.load(std::memory_order_relaxed)) wake_watch();
  const bool last = working_.fetch_add(1, std::memory_order_relaxed) + 1 >= active_.load(std::memory_order_relaxed);
  if (last && poll.step > kLong) call_one();
  static_cast<CallEvent*>(poll.tag)->happened(poll.ok);
  working_.fetch_sub(1, std::memory_order_relaxed);
  steps_.fetch_add(1, std::memory_order_relaxed);
  const Clock::time_point end = Clock::now();
  poll.step = (3 * poll.step + (end - poll.now)) / 4;
  poll.now = end;
}

void CallThreads::call_one() noexcept {
  {
    const MutexLock lock(mutex_);
    if (active_.load(std::memory_order_relaxed) + called_ >= most_) return;
    ++called_;
  }
  wake_.notify_one();
}

void CallThreads::wake_watch() noexcept {
  {
    const MutexLock lock(mutex_);
    if (awake_.exchange(true)) return;
    quiet_looks_ = 0;
  }
  wake_.notify_one();
}

// Returns false at shutdown.
bool CallThreads::wait_for_call() noexcept {
  MutexLock lock(mutex_);
  bool rested = false;
  for (;;) {
    if (stopping_) return false;
    if (called_ > 0) break;
    if (awake_.load(std::memory_order_relaxed) && !watched_) {
      watched_ = true;
      wake_.wait_for(mutex_, kLook);
      watched_ = false;
      if (called_ == 0 && look()) break;
    } else if (rested) {
      wake_.wait(mutex_);
    } else if (wake_.wait_for(mutex_, kRest) == std::cv_status::timeout) {
      rested = true;
      lock.unlock();
      host_.rest();
      lock.lock();
    }
  }
  called_ = std::max(called_ - 1, 0);
  active_.fetch_add(1, std::memory_order_relaxed);
  wake_.notify_one();  // another thread checks from here on
  return true;
}

// Whether all threads at the queue are still in the same steps as at the last check.
bool CallThreads::look() noexcept {
  const uint64_t steps = steps_.load(std::memory_order_relaxed);
  const bool none = std::exchange(seen_steps_, steps) == steps;
  const bool all_work = working_.load(std::memory_order_relaxed) >= active_.load(std::memory_order_relaxed);
  quiet_looks_ = none && !all_work ? quiet_looks_ + 1 : 0;
  if (quiet_looks_ >= kQuietLooks) awake_.store(false, std::memory_order_relaxed);
  return none && all_work;
}

}  // namespace sconce::server::rpc
