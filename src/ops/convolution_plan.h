// Plans of convolutions, kept by the thread that made them: what follows from sizes and strides alone is worked out
// once.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "src/ops/convolution_operands.h"

namespace sconce {

// What a plan depends on, as a row of numbers.
class PlanKey {
 public:
  // Shape, strides, dtypes and fusion; not where the tensors lie, but for whether fusion.other is the output.
  PlanKey(const ConvolutionShape& shape, const ConvolutionOperands& operands, const ActivationView& output) noexcept;
  uint64_t hash() const noexcept;
  friend bool operator==(const PlanKey&, const PlanKey&) noexcept = default;

 private:
  std::array<int64_t, 56> words_;
};

uint64_t hash_words(std::span<const int64_t> words) noexcept;

// A bounded table of plans, one to a slot.
template <class Plan, class Key = PlanKey>
class PlanTable {
 public:
  // The plan of this key; make() makes it if it is not there. Valid until the next call on this thread.
  template <class F>
  static const Plan& get(const Key& key, F make) {
    static thread_local std::unique_ptr<std::array<Slot, kSlots>> slots;
    if (!slots) slots = std::make_unique<std::array<Slot, kSlots>>();
    Slot& slot = (*slots)[key.hash() % kSlots];
    if (!slot || slot->key != key) slot = std::make_unique<Kept>(Kept{key, make()});
    return slot->plan;
  }

 private:
  static constexpr size_t kSlots = 256;
  struct Kept {
    Key key;
    Plan plan;
  };
  using Slot = std::unique_ptr<Kept>;
};

}  // namespace sconce
