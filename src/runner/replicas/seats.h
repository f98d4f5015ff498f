// Seats: where the replicas of a model sit, and which one a request goes to.
//
// A seat stays when its replica goes, and takes a later one: so requests choose among seats without a lock, and find
// out on entering whether the seat is still open. Thread-safe, but for open() and close(), which one thread calls at a
// time.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "src/runner/replicas/generation.h"
#include "src/runner/replicas/lane.h"
#include "src/runner/replicas/replica.h"

namespace sconce {

struct alignas(64) Seat {  // each is written by whoever runs its replica
  Seat(size_t i, std::function<void(Seat&, RunRequest&)> run)
      : index(i), lane([this, run](RunRequest& r) { run(*this, r); }, {}, "lane-" + std::to_string(i)) {}

  bool try_acquire() noexcept { return !busy.exchange(true, std::memory_order_acquire); }
  void acquire() noexcept {
    while (!try_acquire()) busy.wait(true, std::memory_order_relaxed);
  }
  void release() noexcept {
    busy.store(false, std::memory_order_release);
    busy.notify_one();
  }

  const size_t index;
  std::atomic<bool> open{false};
  std::atomic<bool> failed{false};                 // its device is lost
  std::atomic<bool> busy{false};                   // held by one thread, which may run the replica
  std::atomic<const Generation*> pinned{nullptr};  // what it runs
  std::unique_ptr<Replica> replica;                // while open, and until the last holder has left
  Lane lane;
};

// Holds a seat for a scope.
class Held {
 public:
  struct Adopt {};
  explicit Held(Seat& seat) noexcept : seat_(seat) { seat.acquire(); }
  Held(Seat& seat, Adopt) noexcept : seat_(seat) {}
  ~Held() { seat_.release(); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

 private:
  Seat& seat_;
};

class Seats {
 public:
  // What a lane does for a request.
  explicit Seats(std::function<void(Seat&, RunRequest&)> run);

  size_t limit() const noexcept { return limit_.load(std::memory_order_acquire); }  // seats there are, open or not
  Seat& operator[](size_t index) const noexcept { return *seats_[index]; }
  size_t open_count() const noexcept;
  bool any_pinned() const noexcept;
  bool all_failed() const noexcept;  // those that are open
  // What is at the open seats. Waits for no run, no update and no seat that closes.
  std::vector<ReplicaInfo> describe() const;

  // The open seat with the fewest requests, or that of the key; one that failed only if all have. Null if none is open.
  Seat* choose(uint64_t affinity) const noexcept;
  // An open seat that nobody holds and whose lane is not pinned, now held; null if there is none. With a key, that of
  // the key or none.
  Seat* acquire_idle(uint64_t affinity) noexcept;

  // A closed seat, the lowest there is. kTooLarge beyond kMaxReplicas.
  Seat& vacant();
  // `cpus` have passed check_cores().
  void open(Seat& seat, std::unique_ptr<Replica> replica, std::vector<int> cpus) noexcept;
  // Returns when the last request has left. The seat's replica is gone then.
  void close(Seat& seat) noexcept;

 private:
  static bool acquire_open(Seat& seat) noexcept;

  std::function<void(Seat&, RunRequest&)> run_;
  std::unique_ptr<std::unique_ptr<Seat>[]> seats_;  // kMaxReplicas
  mutable std::mutex replicas_mutex_;               // held for moments: which replica a seat has, and its cores
  std::atomic<size_t> limit_{0};
  std::atomic<uint32_t> next_{0};
};

}  // namespace sconce
