// Plans of convolutions and matrix products, cached by the thread that made them: the part of the work that depends
// only on sizes and strides is done once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace sconce {

uint64_t hash_words(std::span<const int64_t> words) noexcept;

// A bounded table of plans, one to a slot.
template <class Plan, class Key>
class PlanTable {
 public:
  // The plan of this key; make() makes it on a miss. Valid until the next call on this thread.
  template <class F>
  static const Plan& get(const Key& key, F make) {
    static thread_local std::unique_ptr<std::array<Slot, kSlots>> slots;
    if (!slots) slots = std::make_unique<std::array<Slot, kSlots>>();
    Slot& slot = (*slots)[key.hash() % kSlots];
    if (!slot || slot->key != key) slot = std::make_unique<Entry>(Entry{key, make()});
    return slot->plan;
  }

 private:
  static constexpr size_t kSlots = 256;
  struct Entry {
    Key key;
    Plan plan;
  };
  using Slot = std::unique_ptr<Entry>;
};

}  // namespace sconce
