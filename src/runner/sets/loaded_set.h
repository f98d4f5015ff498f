// LoadedSet: a named set in memory, as runs use it. Immutable, except what replicas say of their containers.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "sconce/weights.h"
#include "src/runner/constants/constant_set.h"

namespace sconce::runner {

inline constexpr size_t kMaxReplicas = 1024;  // of a model

class LoadedSet final : public WeightSet, public std::enable_shared_from_this<LoadedSet> {
 public:
  // owner: the model's code, so that no other model uses the set.
  LoadedSet(const void* of, std::string name, uint64_t number, const ConstantTable& table,
            std::shared_ptr<const ConstantSet> constants, bool package)
      : WeightSet(std::move(name), number),
        owner(of),
        values(std::move(constants)),
        missing(values->missing(table)),
        reads_package(package) {}

  const void* const owner;
  const std::shared_ptr<const ConstantSet> values;
  const std::string_view missing;  // the first constant without a value; empty if none
  const bool reads_package;        // as WeightVersion::reads_package

  // Replicas keep no instance of it.
  void leave() const noexcept { gone_.store(true); }
  bool gone() const noexcept { return gone_.load(); }
  // A replica that makes an instance calls this before it reads gone(), and the caller of leave() reads has_instances()
  // afterwards. So one of them notices the other.
  void add_instance(size_t slot) const noexcept {
    bits_of(slot).fetch_or(bit_of(slot));
    replicas_.fetch_add(1);
  }
  void remove_instance(size_t slot) const noexcept {
    bits_of(slot).fetch_and(~bit_of(slot));
    replicas_.fetch_sub(1);
  }
  bool has_instances() const noexcept { return replicas_.load() > 0; }
  // Whether the slot's replica has an instance of it. A hint: it may change at once.
  bool has_instance(size_t slot) const noexcept {
    return (bits_of(slot).load(std::memory_order_relaxed) & bit_of(slot)) != 0;
  }

 private:
  std::atomic<uint64_t>& bits_of(size_t slot) const noexcept { return slots_[slot / 64]; }
  static uint64_t bit_of(size_t slot) noexcept { return uint64_t{1} << (slot % 64); }

  mutable std::atomic<bool> gone_{false};
  mutable std::array<std::atomic<uint64_t>, kMaxReplicas / 64> slots_{};
};

}  // namespace sconce::runner
