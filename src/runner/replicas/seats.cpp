#include "src/runner/replicas/seats.h"

#include <limits>
#include <utility>

#include "sconce/check.h"

namespace sconce {
namespace {

// splitmix64: any two seats and any two keys are unrelated.
uint64_t mixed(uint64_t x) noexcept {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

Seats::Seats(std::function<void(Seat&, RunRequest&)> run)
    : run_(std::move(run)), seats_(std::make_unique<std::unique_ptr<Seat>[]>(kMaxReplicas)) {}

size_t Seats::open_count() const noexcept {
  size_t count = 0;
  for (size_t i = 0; i < limit(); ++i) count += seats_[i]->open.load(std::memory_order_relaxed);
  return count;
}

bool Seats::any_pinned() const noexcept {
  for (size_t i = 0; i < limit(); ++i)
    if (seats_[i]->open.load(std::memory_order_relaxed) && !seats_[i]->lane.cpus().empty()) return true;
  return false;
}

bool Seats::all_failed() const noexcept {
  for (size_t i = 0; i < limit(); ++i)
    if (seats_[i]->open.load(std::memory_order_relaxed) && !seats_[i]->failed.load()) return false;
  return true;
}

Seat* Seats::choose(uint64_t affinity) const noexcept {
  Seat* best = nullptr;
  int64_t least = 0;
  uint64_t highest = 0;
  bool best_failed = false;
  const size_t count = limit();
  for (size_t i = 0; i < count; ++i) {
    Seat& seat = *seats_[i];
    if (!seat.open.load(std::memory_order_acquire)) continue;
    const bool failed = seat.failed.load(std::memory_order_relaxed);
    if (best && failed && !best_failed) continue;
    if (best_failed && !failed) best = nullptr;
    if (best && failed != best_failed) continue;
    const Seat* const before = best;
    if (affinity == 0) {
      const int64_t load = seat.lane.load();
      if (!best || load < least) best = &seat, least = load;
    } else {
      // The highest of all draws wins: when a seat goes, only its own keys move.
      const uint64_t draw = mixed(affinity ^ mixed(i));
      if (!best || draw > highest) best = &seat, highest = draw;
    }
    if (best != before) best_failed = failed;
  }
  return best;
}

bool Seats::acquire_open(Seat& seat) noexcept {
  if (!seat.open.load(std::memory_order_relaxed) || seat.failed.load(std::memory_order_relaxed) || !seat.try_acquire())
    return false;
  if (seat.open.load() && seat.lane.cpus().empty()) return true;
  seat.release();
  return false;
}

Seat* Seats::acquire_idle(uint64_t affinity) noexcept {
  if (affinity != 0) {
    Seat* seat = choose(affinity);
    return seat && acquire_open(*seat) ? seat : nullptr;
  }
  // A thread begins with the seat it had last, whose memory is in its caches and whose device it is on; a new one with
  // the next in turn. For several models one number does: it is where to look first.
  constexpr size_t kNone = std::numeric_limits<size_t>::max();
  thread_local size_t last = kNone;
  const size_t count = limit();
  const size_t first = count <= 1 ? 0 : last != kNone ? last : next_.fetch_add(1, std::memory_order_relaxed);
  for (size_t i = 0; i < count; ++i) {
    const size_t index = (first + i) % count;
    if (!acquire_open(*seats_[index])) continue;
    if (count > 1) last = index;
    return seats_[index].get();
  }
  return nullptr;
}

Seat& Seats::vacant() {
  const size_t count = limit();
  for (size_t i = 0; i < count; ++i)
    if (!seats_[i]->open.load(std::memory_order_relaxed)) return *seats_[i];
  SCONCE_CHECK(count < kMaxReplicas, kTooLarge, "a model has at most ", kMaxReplicas, " replicas");
  seats_[count] = std::make_unique<Seat>(count, run_);
  limit_.store(count + 1, std::memory_order_release);
  return *seats_[count];
}

void Seats::open(Seat& seat, std::unique_ptr<Replica> replica, std::vector<int> cpus) noexcept {
  {
    const std::lock_guard lock(replicas_mutex_);
    seat.lane.reopen(std::move(cpus));
    seat.replica = std::move(replica);
  }
  seat.failed.store(false);
  seat.open.store(true);
}

void Seats::close(Seat& seat) noexcept {
  seat.open.store(false);
  seat.lane.close();
  // Whoever ran on a thread of his own has left once the seat can be had; who comes now finds it closed.
  const Held held(seat);
  std::unique_ptr<Replica> gone;
  const std::lock_guard lock(replicas_mutex_);
  gone.swap(seat.replica);
}

std::vector<ReplicaInfo> Seats::describe() const {
  std::vector<ReplicaInfo> result;
  const std::lock_guard lock(replicas_mutex_);
  for (size_t i = 0; i < limit(); ++i) {
    const Seat& seat = *seats_[i];
    if (!seat.open.load() || !seat.replica) continue;
    const GraphReport& graphs = seat.replica->graphs();
    result.push_back({static_cast<int>(i), seat.replica->device(), seat.lane.cpus(), seat.lane.load(), graphs.count(),
                      graphs.runs(), graphs.why_none(), seat.replica->failure()});
  }
  return result;
}

}  // namespace sconce
