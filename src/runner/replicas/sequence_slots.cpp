#include "src/runner/replicas/sequence_slots.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "sconce/check.h"

namespace sconce::runner {

namespace {

template <class T>
void make_room(std::vector<T>& list, size_t count) {
  if (list.capacity() < count) list.reserve(std::max(count, 2 * list.capacity()));
}

}  // namespace

// A slot that a sequence has.
class SequenceSlots::Taken final : public Sequence {
 public:
  Taken(SequenceSlots& slots, std::unique_ptr<SequenceSlot> slot, std::shared_ptr<const void> owner)
      : owner_(std::move(owner)), slots_(slots), slot_(std::move(slot)) {}
  ~Taken() override { slots_.give(std::move(slot_)); }
  Taken(const Taken&) = delete;
  Taken& operator=(const Taken&) = delete;
  size_t replica() const noexcept override { return slot_->replica; }
  SequenceSlot* slot_for(const void* runner) const noexcept { return slots_.runner_ == runner ? slot_.get() : nullptr; }

 private:
  const std::shared_ptr<const void> owner_;  // destroyed last: it owns the runner
  SequenceSlots& slots_;
  std::unique_ptr<SequenceSlot> slot_;
};

SequenceSlots::SequenceSlots(const void* runner, size_t most, uint64_t memory, uint64_t bytes)
    : runner_(runner),
      most_(most),
      by_memory_(memory == 0 || bytes == 0 ? std::numeric_limits<size_t>::max() : memory / bytes),
      bytes_(bytes) {}

SequenceSlots::~SequenceSlots() = default;

SequenceSlot* SequenceSlots::slot_of(const Sequence& sequence, const void* runner) noexcept {
  return static_cast<const Taken&>(sequence).slot_for(runner);
}

// The open replica whose replica works and has the fewest sequences.
size_t SequenceSlots::choose(const ReplicaSlots& replicas) {
  constexpr size_t kNone = std::numeric_limits<size_t>::max();
  size_t best = kNone;
  count_.resize(std::max(count_.size(), replicas.limit()));
  for (size_t i = 0; i < replicas.limit(); ++i) {
    if (!replicas[i].open.load() || replicas[i].failed.load()) continue;
    if (best == kNone || count_[i] < count_[best]) best = i;
  }
  SCONCE_CHECK(best != kNone, kUnavailable, "no replica is left whose device works");
  return best;
}

std::shared_ptr<Sequence> SequenceSlots::take(const ReplicaSlots& replicas, std::shared_ptr<const void> owner,
                                              bool rows) {
  std::unique_ptr<SequenceSlot> slot, others[2];  // freed without the mutex
  const MutexLock lock(mutex_);
  // In buffers of one slot: those of slots that wait may be freed.
  const size_t needed = taken_.size() + with_rows_ + (rows ? 2 : 1);
  SCONCE_CHECK(taken_.size() < most_ && needed <= by_memory_, kQueueFull,
               "all places for sequences are taken: ", taken_.size(),
               taken_.size() < most_ ? ", as many as the memory for their buffers allows" : "");
  const size_t replica = choose(replicas);
  make_room(taken_, taken_.size() + 1);
  make_room(free_, taken_.size() + 1 + free_.size());  // give() must not fail
  const auto waits =
      std::find_if(free_.rbegin(), free_.rend(), [&](const auto& free) { return free->replica == replica; });
  if (waits != free_.rend()) {
    slot = std::move(*waits);
    free_.erase(std::next(waits).base());
  }
  for (std::unique_ptr<SequenceSlot>& other : others) {
    if (free_.empty() || (taken_.size() + free_.size() < most_ && needed + free_.size() <= by_memory_)) break;
    other = std::move(free_.back());
    free_.pop_back();
  }
  least_free_ = std::min(least_free_, free_.size());
  if (!slot) slot = std::make_unique<SequenceSlot>(replica);
  SequenceSlot* const address = slot.get();
  std::shared_ptr<Sequence> sequence = std::make_shared<Taken>(*this, std::move(slot), std::move(owner));
  address->index = taken_.size();
  address->has_rows = rows;
  taken_.push_back(address);
  if (rows) ++with_rows_;
  ++count_[replica];
  return sequence;
}

void SequenceSlots::give(std::unique_ptr<SequenceSlot> slot) noexcept {
  if (!slot) return;
  std::vector<Tensor> aside;  // freed without the mutex
  const MutexLock lock(mutex_);
  aside.swap(slot->aside);  // under the mutex, because leave() clears it
  if (slot->has_rows) --with_rows_;
  taken_[slot->index] = taken_.back();
  taken_[slot->index]->index = slot->index;
  taken_.pop_back();
  if (!slot->gone.load()) --count_[slot->replica];
  slot->begun = false;
  if (!slot->gone.load() && slot->instance) free_.push_back(std::move(slot));
}

void SequenceSlots::leave(size_t replica) noexcept {
  const MutexLock lock(mutex_);
  for (SequenceSlot* const slot : taken_) {
    if (slot->replica != replica || slot->gone.exchange(true)) continue;
    --count_[replica];
    slot->begun = false;
    slot->instance.reset();
    slot->values.reset();
    slot->aside.clear();
  }
  std::erase_if(free_, [&](const auto& slot) { return slot->replica == replica; });
  least_free_ = std::min(least_free_, free_.size());
}

void SequenceSlots::trim(bool all) noexcept {
  for (;;) {
    std::unique_ptr<SequenceSlot> slot;
    const MutexLock lock(mutex_);
    if (free_.empty() || (least_free_ == 0 && !all)) break;
    if (least_free_ > 0) --least_free_;
    slot = std::move(free_.front());
    free_.erase(free_.begin());
  }
  const MutexLock lock(mutex_);
  least_free_ = free_.size();
}

}  // namespace sconce::runner
