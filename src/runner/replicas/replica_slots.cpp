#include "src/runner/replicas/replica_slots.h"

#include <limits>
#include <utility>

#include "sconce/check.h"
#include "src/support/hash.h"

namespace sconce::runner {

ReplicaSlots::ReplicaSlots(std::function<void(ReplicaSlot&, RunRequest&)> run)
    : run_(std::move(run)), slots_(std::make_unique<std::unique_ptr<ReplicaSlot>[]>(kMaxReplicas)) {}

size_t ReplicaSlots::open_count() const noexcept {
  size_t count = 0;
  for (size_t i = 0; i < limit(); ++i) count += slots_[i]->open.load(std::memory_order_relaxed);
  return count;
}

bool ReplicaSlots::any_pinned() const noexcept {
  for (size_t i = 0; i < limit(); ++i)
    if (slots_[i]->open.load(std::memory_order_relaxed) && !slots_[i]->thread.cpus().empty()) return true;
  return false;
}

bool ReplicaSlots::all_failed() const noexcept {
  for (size_t i = 0; i < limit(); ++i)
    if (slots_[i]->open.load(std::memory_order_relaxed) && !slots_[i]->failed.load()) return false;
  return true;
}

ReplicaSlot* ReplicaSlots::choose(uint64_t affinity, const LoadedSet* set) const noexcept {
  ReplicaSlot* best = nullptr;
  int64_t least = 0;
  uint64_t highest = 0;
  bool best_failed = false;
  const size_t count = limit();
  for (size_t i = 0; i < count; ++i) {
    ReplicaSlot& slot = *slots_[i];
    if (!slot.open.load(std::memory_order_acquire)) continue;
    const bool failed = slot.failed.load(std::memory_order_relaxed);
    if (best && failed && !best_failed) continue;
    if (best_failed && !failed) best = nullptr;
    if (best && failed != best_failed) continue;
    const ReplicaSlot* const before = best;
    if (affinity == 0) {
      const int64_t load = slot.thread.load();
      const bool equal = best && load == least && set && !set->has_instance(best->index) && set->has_instance(i);
      if (!best || load < least || equal) best = &slot, least = load;
    } else {
      // The highest draw wins, so when a slot goes, only its own keys move.
      const uint64_t draw = splitmix64(affinity ^ splitmix64(i));
      if (!best || draw > highest) best = &slot, highest = draw;
    }
    if (best != before) best_failed = failed;
  }
  return best;
}

bool ReplicaSlots::acquire_open(ReplicaSlot& slot) noexcept {
  if (!slot.open.load(std::memory_order_relaxed) || slot.failed.load(std::memory_order_relaxed) || !slot.try_acquire())
    return false;
  if (slot.open.load() && slot.thread.cpus().empty()) return true;
  slot.release();
  return false;
}

ReplicaSlot* ReplicaSlots::acquire_idle(uint64_t affinity) noexcept {
  if (affinity != 0) {
    ReplicaSlot* slot = choose(affinity);
    return slot && acquire_open(*slot) ? slot : nullptr;
  }
  // A thread first tries the slot it had last, whose memory is in its caches and whose device is current; a new thread
  // tries the next in turn. All models share the number, as it is only a hint.
  constexpr size_t kNone = std::numeric_limits<size_t>::max();
  thread_local size_t last = kNone;
  const size_t count = limit();
  const size_t first = count <= 1 ? 0 : last != kNone ? last : next_.fetch_add(1, std::memory_order_relaxed);
  for (size_t i = 0; i < count; ++i) {
    const size_t index = (first + i) % count;
    if (!acquire_open(*slots_[index])) continue;
    if (count > 1) last = index;
    return slots_[index].get();
  }
  return nullptr;
}

ReplicaSlot& ReplicaSlots::vacant() {
  const size_t count = limit();
  for (size_t i = 0; i < count; ++i)
    if (!slots_[i]->open.load(std::memory_order_relaxed)) return *slots_[i];
  SCONCE_CHECK(count < kMaxReplicas, kTooLarge, "a model has at most ", kMaxReplicas, " replicas");
  slots_[count] = std::make_unique<ReplicaSlot>(count, run_);
  limit_.store(count + 1, std::memory_order_release);
  return *slots_[count];
}

void ReplicaSlots::open(ReplicaSlot& slot, std::unique_ptr<Replica> replica, std::vector<int> cpus) noexcept {
  {
    const MutexLock lock(replicas_mutex_);
    slot.thread.reopen(std::move(cpus));
    slot.replica = std::move(replica);
  }
  slot.failed.store(false);
  slot.open.store(true);
}

void ReplicaSlots::begin_closing(ReplicaSlot& slot) noexcept {
  slot.open.store(false);
  slot.thread.close();
}

void ReplicaSlots::end_closing(ReplicaSlot& slot) noexcept {
  slot.sets.reset();
  std::unique_ptr<Replica> gone;
  const MutexLock lock(replicas_mutex_);
  gone.swap(slot.replica);
}

std::vector<ReplicaInfo> ReplicaSlots::describe() const {
  std::vector<ReplicaInfo> result;
  const MutexLock lock(replicas_mutex_);
  for (size_t i = 0; i < limit(); ++i) {
    const ReplicaSlot& slot = *slots_[i];
    if (!slot.open.load() || !slot.replica) continue;
    const GraphReport& graphs = slot.replica->graphs();
    result.push_back({static_cast<int>(i), slot.replica->device(), slot.thread.cpus(), slot.thread.load(),
                      graphs.count(), graphs.runs(), graphs.why_none(), slot.replica->failure()});
  }
  return result;
}

}  // namespace sconce::runner
