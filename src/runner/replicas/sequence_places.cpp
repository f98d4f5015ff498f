#include "src/runner/replicas/sequence_places.h"

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

// A place that a sequence has.
class SequencePlaces::Taken final : public Sequence {
 public:
  Taken(SequencePlaces& places, std::unique_ptr<SequenceSlot> place, std::shared_ptr<const void> owner)
      : owner_(std::move(owner)), places_(places), place_(std::move(place)) {}
  ~Taken() override { places_.give(std::move(place_)); }
  Taken(const Taken&) = delete;
  Taken& operator=(const Taken&) = delete;
  size_t replica() const noexcept override { return place_->slot; }
  SequenceSlot* place_for(const void* runner) const noexcept {
    return places_.runner_ == runner ? place_.get() : nullptr;
  }

 private:
  const std::shared_ptr<const void> owner_;  // destroyed last: it owns the runner
  SequencePlaces& places_;
  std::unique_ptr<SequenceSlot> place_;
};

SequencePlaces::SequencePlaces(const void* runner, size_t most, uint64_t memory, uint64_t bytes)
    : runner_(runner),
      most_(most),
      by_memory_(memory == 0 || bytes == 0 ? std::numeric_limits<size_t>::max() : memory / bytes),
      bytes_(bytes) {}

SequencePlaces::~SequencePlaces() = default;

SequenceSlot* SequencePlaces::place_of(const Sequence& sequence, const void* runner) noexcept {
  return static_cast<const Taken&>(sequence).place_for(runner);
}

// The open slot whose replica works and has the fewest sequences.
size_t SequencePlaces::choose(const ReplicaSlots& slots) {
  constexpr size_t kNone = std::numeric_limits<size_t>::max();
  size_t best = kNone;
  count_.resize(std::max(count_.size(), slots.limit()));
  for (size_t i = 0; i < slots.limit(); ++i) {
    if (!slots[i].open.load() || slots[i].failed.load()) continue;
    if (best == kNone || count_[i] < count_[best]) best = i;
  }
  SCONCE_CHECK(best != kNone, kUnavailable, "no replica is left whose device works");
  return best;
}

std::shared_ptr<Sequence> SequencePlaces::take(const ReplicaSlots& slots, std::shared_ptr<const void> owner,
                                               bool rows) {
  std::unique_ptr<SequenceSlot> place, others[2];  // freed without the mutex
  const MutexLock lock(mutex_);
  // In buffers of one place: those of places that wait may be freed.
  const size_t needed = taken_.size() + with_rows_ + (rows ? 2 : 1);
  SCONCE_CHECK(taken_.size() < most_ && needed <= by_memory_, kQueueFull,
               "all places for sequences are taken: ", taken_.size(),
               taken_.size() < most_ ? ", as many as the memory for their buffers allows" : "");
  const size_t slot = choose(slots);
  make_room(taken_, taken_.size() + 1);
  make_room(free_, taken_.size() + 1 + free_.size());  // give() must not fail
  const auto waits = std::find_if(free_.rbegin(), free_.rend(), [&](const auto& free) { return free->slot == slot; });
  if (waits != free_.rend()) {
    place = std::move(*waits);
    free_.erase(std::next(waits).base());
  }
  for (std::unique_ptr<SequenceSlot>& other : others) {
    if (free_.empty() || (taken_.size() + free_.size() < most_ && needed + free_.size() <= by_memory_)) break;
    other = std::move(free_.back());
    free_.pop_back();
  }
  least_free_ = std::min(least_free_, free_.size());
  if (!place) place = std::make_unique<SequenceSlot>(slot);
  SequenceSlot* const address = place.get();
  std::shared_ptr<Sequence> sequence = std::make_shared<Taken>(*this, std::move(place), std::move(owner));
  address->index = taken_.size();
  address->has_rows = rows;
  taken_.push_back(address);
  if (rows) ++with_rows_;
  ++count_[slot];
  return sequence;
}

void SequencePlaces::give(std::unique_ptr<SequenceSlot> place) noexcept {
  if (!place) return;
  const std::vector<Tensor> aside = std::exchange(place->aside, {});  // freed without the mutex
  const MutexLock lock(mutex_);
  if (place->has_rows) --with_rows_;
  taken_[place->index] = taken_.back();
  taken_[place->index]->index = place->index;
  taken_.pop_back();
  if (!place->gone.load()) --count_[place->slot];
  place->begun = false;
  if (!place->gone.load() && place->instance) free_.push_back(std::move(place));
}

void SequencePlaces::leave(size_t slot) noexcept {
  const MutexLock lock(mutex_);
  for (SequenceSlot* const place : taken_) {
    if (place->slot != slot || place->gone.exchange(true)) continue;
    --count_[slot];
    place->begun = false;
    place->instance.reset();
    place->values.reset();
    place->aside.clear();
  }
  std::erase_if(free_, [&](const auto& place) { return place->slot == slot; });
  least_free_ = std::min(least_free_, free_.size());
}

void SequencePlaces::trim(bool all) noexcept {
  for (;;) {
    std::unique_ptr<SequenceSlot> place;
    const MutexLock lock(mutex_);
    if (free_.empty() || (least_free_ == 0 && !all)) break;
    if (least_free_ > 0) --least_free_;
    place = std::move(free_.front());
    free_.erase(free_.begin());
  }
  const MutexLock lock(mutex_);
  least_free_ = free_.size();
}

}  // namespace sconce::runner
