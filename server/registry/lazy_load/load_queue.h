// LoadQueue: loads what requests ask for, once for however many wait for it, and nothing while nobody does.
//
//   idle --ask--> queued --a thread--> loading --+--> idle        all who wait are told
//     ^                          ^               +--> failed      so are they; who asks soon after is told at once
//     |                          +--- in line <--+                there is no room yet: nobody is told, no thread waits
//     +------------- Turn: others change it ------------+
//
// A load that finds no room joins a line. Each of the line is tried again when room has become free (retry()), the
// first one also when something may make room (look_again()). After `patience` there is a last try, whose error is
// told. Room is of several kinds (the host's memory, that of each device): a load is the first one if none before it
// lacks a kind that it lacks.
//
// A name is changed by one at a time: a thread that loads it, or whoever has its Turn. Requests that ask meanwhile
// wait, and are looked after when that is over. A load by whoever has the Turn waits in the same line
// (Turn::with_room()). Thread-safe.
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

namespace sconce::server {

class LoadQueue {
  struct Unit;

 public:
  using Clock = std::chrono::steady_clock;

  // A request that waits. Its owner keeps it until notify() was called, or cancel() returned true.
  struct Waiter {
    void (*notify)(void* context) noexcept = nullptr;
    void* context = nullptr;
    std::exception_ptr problem;  // set before notify(): why it is not loaded; null: it was

   private:
    friend class LoadQueue;
    Unit* unit = nullptr;  // in whose list it is
    Waiter *next = nullptr, *previous = nullptr;
  };

  // What a load knows of those who wait for it, and may ask of LoadQueue.
  class Wanted {
   public:
    // Whether somebody still waits for what is being loaded.
    bool operator()() const;
    // Whether nobody waited before this one for room of these kinds (bits), or of some of them.
    bool is_first_in_line(uint64_t kinds) const;
    // There is no room of these kinds now, and may be later: if load() now throws, it is called again, until `patience`
    // has passed.
    void wait_for_room(uint64_t kinds) const;
    // What the loader keeps from one try to the next. Null at the first one.
    std::shared_ptr<void>& kept() const noexcept { return unit_.kept; }

   private:
    friend class LoadQueue;
    Wanted(const LoadQueue& demand, Unit& unit) : demand_(demand), unit_(unit) {}
    const LoadQueue& demand_;
    Unit& unit_;
  };

  class Loader {
   public:
    // On a thread of LoadQueue. Must do nothing if it is loaded already. What it throws is told to those who wait.
    // kQueueFull, kUnavailable and kCancelled are not remembered: the next who asks has it tried again. After
    // kCancelled, those who came meanwhile have it tried again too.
    virtual void load(const std::string& name, const Wanted& wanted) = 0;

   protected:
    ~Loader() = default;
  };

  // The right to change what has the name. Nobody loads it meanwhile.
  class Turn {
   public:
    Turn(LoadQueue& demand, const std::string& name) : demand_(&demand), unit_(demand.take(name, true)) {}
    // If somebody has it, `held()` is false.
    static Turn attempt(LoadQueue& demand, const std::string& name) { return Turn(demand, demand.take(name, false)); }
    Turn(Turn&& other) noexcept : demand_(other.demand_), unit_(std::exchange(other.unit_, nullptr)) {}
    Turn& operator=(Turn&&) = delete;
    ~Turn() {
      if (unit_) demand_->give_back(*unit_);
    }
    bool held() const noexcept { return unit_ != nullptr; }
    // Does the work, which loads what has the name, on this thread: again and again as Loader::load(). Throws what its
    // last try threw.
    void with_room(const std::function<void(const Wanted&)>& work) const { demand_->with_room(*unit_, work); }

   private:
    Turn(LoadQueue& demand, Unit* unit) noexcept : demand_(&demand), unit_(unit) {}
    LoadQueue* demand_;
    Unit* unit_;
  };

  struct Times {
    std::chrono::nanoseconds remember{};                           // how long a failure is told without another try
    std::chrono::nanoseconds patience = std::chrono::seconds(10);  // of those who wait for room
    // The first in line is tried again after this time, for room that nobody reports; and no sooner after a try than
    // this, which doubles up to `look_again`.
    std::chrono::nanoseconds look_again = std::chrono::milliseconds(50), pause = std::chrono::milliseconds(1);
    std::function<Clock::time_point()> now = &Clock::now;
  };

  // threads: how many load at the same time; they start when they are needed.
  LoadQueue(Loader& loader, size_t threads, Times times);
  LoadQueue(const LoadQueue&) = delete;
  ~LoadQueue() { stop(); }
  // Waits for what is being loaded. Those who wait for others, and all who ask from now on, get kUnavailable.
  void stop() noexcept;
  bool stopping() const noexcept { return stopping_.load(std::memory_order_relaxed); }

  // The waiter will be told. Throws a failure that is remembered; kQueueFull if `most` wait for the name; kUnavailable;
  // std::system_error if there is no thread.
  void ask(const std::string& name, Waiter& waiter, size_t most);
  // True: it will not be told. False: it was told, or is about to be.
  bool cancel(Waiter& waiter) noexcept;
  void forget_failure(std::string_view name);
  // Room has become free: all in line are tried again, in the order in which they came.
  void retry() noexcept { wake_line(true); }
  // Something has ended that kept a model from going: the first in line is tried again.
  void look_again() noexcept { wake_line(false); }

  enum class State : int8_t { kLoading, kFailed };
  struct Status {
    State state = State::kLoading;
    std::string reason;  // of the failure
  };
  std::map<std::string, Status, std::less<>> statuses() const;  // of names that are not idle

  struct Counts {
    uint64_t loads = 0, failures = 0, load_ns = 0;
    int64_t waiting = 0;
    int64_t in_line = 0;  // loads that wait for room now, on none of LoadQueue's threads
  };
  Counts counts() const;

 private:
  struct Unit {
    std::string name;
    bool taken = false, loading = false, queued = false;
    int64_t turns = 0;     // that wait for it
    bool by_hand = false;  // whoever has its turn waits for it
    // Of a load that found no room.
    bool waits_for_room = false, in_line = false;
    uint64_t lacks = 0;                                   // kinds of room
    uint64_t seen = 0;                                    // wakes_ when the try began
    Clock::time_point until{}, next_try{}, not_before{};  // until: of its patience; not_before: next_try is not earlier
    std::chrono::nanoseconds pause{};
    std::shared_ptr<void> kept;
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
  // Returns false if those who wait are to be told.
  bool join_line(Unit& unit) noexcept SCONCE_REQUIRES(mutex_);
  // Returns what the loader kept, to be freed without the mutex.
  std::shared_ptr<void> leave_line(Unit& unit) noexcept SCONCE_REQUIRES(mutex_);
  // A list that take_waiters() returned.
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
  ConditionVariable wake_, turns_, by_hand_;
  Units units_ SCONCE_GUARDED_BY(mutex_);
  std::deque<Unit*> queue_ SCONCE_GUARDED_BY(mutex_);
  std::deque<Unit*> line_ SCONCE_GUARDED_BY(mutex_);  // of those who wait for room, the first one first
  uint64_t wakes_ SCONCE_GUARDED_BY(mutex_) = 0;
  std::vector<std::thread> threads_ SCONCE_GUARDED_BY(mutex_);
  size_t idle_ SCONCE_GUARDED_BY(mutex_) = 0, failed_ SCONCE_GUARDED_BY(mutex_) = 0;
  Counts counts_ SCONCE_GUARDED_BY(mutex_);
};

}  // namespace sconce::server
