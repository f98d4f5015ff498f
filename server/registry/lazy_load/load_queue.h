// LoadQueue: loads models on demand, once for all requests that wait for the same model. Without requests it does
// nothing.
//
//   idle --ask--> queued --a thread--> loading --+--> idle        all waiters are notified
//     ^                          ^               +--> failed      likewise; a request soon after is notified at once
//     |                          +--- in line <--+                not enough memory yet: no notice, no thread waits
//     +----------- LoadLock: the name is being changed ---+
//
// A load without enough memory joins a line. Each load in the line is retried when memory has become free (retry());
// the first load is also retried when something may free memory (look_again()). After `patience` there is a last try,
// and its error is final. Memory is of several kinds (the host's, each device's): a load is first in line if no load
// before it is short of a kind that it is short of too.
//
// One thread at a time may change a name: a loading thread, or the holder of its LoadLock. Requests that arrive
// meanwhile wait until the change has ended. A load by the holder of the LoadLock waits in the same line
// (LoadLock::with_room()). Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "sconce/error.h"
#include "sconce/mutex.h"

namespace sconce::server::registry {

class LoadQueue {
  struct Unit;

 public:
  using Clock = std::chrono::steady_clock;

  // A waiting request. Its owner keeps it until notify() was called, or cancel() returned true.
  struct Waiter {
    void (*notify)(void* context) noexcept = nullptr;
    void* context = nullptr;
    std::exception_ptr problem;  // set before notify(): the error of the load; null: it was loaded

   private:
    friend class LoadQueue;
    Unit* unit = nullptr;  // the unit whose list it is in
    Waiter *next = nullptr, *previous = nullptr;
  };

  // What a load knows about its waiters, and may ask of LoadQueue.
  class Wanted {
   public:
    // Whether a request still waits for this load.
    bool operator()() const;
    // Whether no earlier load waits for memory of any of these kinds (bits).
    bool is_first_in_line(uint64_t kinds) const;
    // Memory of these kinds is short now, but may become free: if load() throws after this call, it is called again,
    // until `patience` has passed.
    void wait_for_room(uint64_t kinds) const;
    // Data that the loader keeps between tries. Null at the first try.
    std::shared_ptr<void>& loader_data() const noexcept { return unit_.loader_data; }

   private:
    friend class LoadQueue;
    Wanted(const LoadQueue& demand, Unit& unit) : demand_(demand), unit_(unit) {}
    const LoadQueue& demand_;
    Unit& unit_;
  };

  class Loader {
   public:
    // Called on a thread of LoadQueue. Must do nothing if the model is already loaded. Its exceptions are passed to the
    // waiters. kQueueFull, kUnavailable and kCancelled are not remembered: the next request triggers another try. After
    // kCancelled, requests that arrived meanwhile also trigger one.
    virtual void load(const std::string& name, const Wanted& wanted) = 0;

   protected:
    ~Loader() = default;
  };

  // The exclusive right to change a name. No thread loads it meanwhile.
  class LoadLock {
   public:
    LoadLock(LoadQueue& demand, const std::string& name) : demand_(&demand), unit_(demand.take(name, true)) {}
    // If the name is taken, `held()` is false.
    static LoadLock attempt(LoadQueue& demand, const std::string& name) {
      return LoadLock(demand, demand.take(name, false));
    }
    LoadLock(LoadLock&& other) noexcept : demand_(other.demand_), unit_(std::exchange(other.unit_, nullptr)) {}
    LoadLock& operator=(LoadLock&&) = delete;
    ~LoadLock() {
      if (unit_) demand_->give_back(*unit_);
    }
    bool held() const noexcept { return unit_ != nullptr; }
    // Calls `work`, which loads the model, on this thread, with retries like those of Loader::load(). Throws the error
    // of its last try.
    void with_room(const std::function<void(const Wanted&)>& work) const { demand_->with_room(*unit_, work); }

   private:
    LoadLock(LoadQueue& demand, Unit* unit) noexcept : demand_(&demand), unit_(unit) {}
    LoadQueue* demand_;
    Unit* unit_;
  };

  struct Times {
    std::chrono::nanoseconds remember{};                           // how long a failure is reported without another try
    std::chrono::nanoseconds patience = std::chrono::seconds(10);  // how long a load waits for memory
    // The first load in line is retried after look_again, in case memory became free without a notice. Two tries are at
    // least `pause` apart; the pause doubles with each try, up to look_again.
    std::chrono::nanoseconds look_again = std::chrono::milliseconds(50), pause = std::chrono::milliseconds(1);
    std::function<Clock::time_point()> now = &Clock::now;
  };

  // threads: number of parallel loads; a thread starts when it is needed.
  LoadQueue(Loader& loader, size_t threads, Times times);
  LoadQueue(const LoadQueue&) = delete;
  ~LoadQueue() { stop(); }
  // Waits for loads in progress. Waiters for other loads, and all later requests, get kUnavailable.
  void stop() noexcept;
  bool stopping() const noexcept { return stopping_.load(std::memory_order_relaxed); }

  // Registers the waiter, which will be notified. Throws a remembered failure; kQueueFull if `most` requests already
  // wait for the name; kUnavailable; std::system_error if no thread can be started.
  void ask(const std::string& name, Waiter& waiter, size_t most);
  // True: it will not be notified. False: it was notified, or is about to be.
  bool cancel(Waiter& waiter) noexcept;
  void forget_failure(std::string_view name);
  // Memory has become free: all loads in line are retried, in the order of arrival.
  void retry() noexcept { wake_line(true); }
  // An obstacle to evicting a model has gone: the first load in line is retried.
  void look_again() noexcept { wake_line(false); }

  enum class State : int8_t { kLoading, kFailed };
  struct Status {
    State state = State::kLoading;
    std::string reason;  // of the failure
  };
  std::map<std::string, Status, std::less<>> statuses() const;  // names that are not idle

  struct Counts {
    uint64_t loads = 0, failures = 0, load_ns = 0;
    int64_t waiting = 0;
    int64_t in_line = 0;  // loads that currently wait for memory, on none of LoadQueue's threads
  };
  Counts counts() const;

 private:
  struct Unit {
    std::string name;
    bool taken = false, loading = false, queued = false;
    int64_t lock_waiters = 0;  // number of threads that wait for the LoadLock
    bool by_hand = false;      // the holder of its LoadLock waits for memory
    // State of a load that waits for memory.
    bool waits_for_room = false, in_line = false;
    uint64_t lacks = 0;                                   // kinds of memory
    uint64_t seen = 0;                                    // wakes_ when the try began
    Clock::time_point until{}, next_try{}, not_before{};  // until: end of its patience; not_before: earliest next_try
    std::chrono::nanoseconds pause{};
    std::shared_ptr<void> loader_data;
    Waiter *first = nullptr, *last = nullptr;
    size_t waiting = 0;
    bool failed = false;
    ErrorCode code = ErrorCode::kInternal;
    std::string reason;
    Clock::time_point failed_at;
  };
  using Units = std::map<std::string, Unit, std::less<>>;

  Unit* take(const std::string& name, bool wait);
  void give_back(Unit& unit) noexcept;
  void run() noexcept;
  void load_one(Unit& unit) noexcept;
  void with_room(Unit& unit, const std::function<void(const Wanted&)>& work);
  void wake_line(bool all) noexcept;
  Unit* next_of_line(Clock::time_point now) noexcept SCONCE_REQUIRES(mutex_);
  Clock::time_point next_look() const noexcept SCONCE_REQUIRES(mutex_);
  bool is_first(const Unit& unit, uint64_t kinds) const noexcept SCONCE_REQUIRES(mutex_);
  void tell_line() noexcept SCONCE_REQUIRES(mutex_);
  // Returns false if the waiters must be notified.
  bool join_line(Unit& unit) noexcept SCONCE_REQUIRES(mutex_);
  // Returns the loader's data, to be freed without the mutex.
  std::shared_ptr<void> leave_line(Unit& unit) noexcept SCONCE_REQUIRES(mutex_);
  // told: a list returned by take_waiters().
  static void tell(Waiter* told, const std::exception_ptr& problem) noexcept;
  Unit& unit_of(const std::string& name) SCONCE_REQUIRES(mutex_);
  void enqueue(Unit& unit) SCONCE_REQUIRES(mutex_);
  Waiter* take_waiters(Unit& unit) noexcept SCONCE_REQUIRES(mutex_);
  void drop_if_idle(Unit& unit) noexcept SCONCE_REQUIRES(mutex_);
  void drop_old_failures() noexcept SCONCE_REQUIRES(mutex_);

  Loader& loader_;
  const size_t most_threads_;
  const Times times_;
  std::atomic<bool> stopping_{false};
  mutable Mutex mutex_;
  ConditionVariable wake_, unlocked_, by_hand_;
  Units units_ SCONCE_GUARDED_BY(mutex_);
  std::deque<Unit*> queue_ SCONCE_GUARDED_BY(mutex_);
  std::deque<Unit*> line_ SCONCE_GUARDED_BY(mutex_);  // loads that wait for memory, in order of arrival
  uint64_t wakes_ SCONCE_GUARDED_BY(mutex_) = 0;
  std::vector<std::thread> threads_ SCONCE_GUARDED_BY(mutex_);
  size_t idle_ SCONCE_GUARDED_BY(mutex_) = 0, failed_ SCONCE_GUARDED_BY(mutex_) = 0;
  Counts counts_ SCONCE_GUARDED_BY(mutex_);
};

}  // namespace sconce::server::registry
