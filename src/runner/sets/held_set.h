// HeldSet: a named set in memory, as runs use it. Immutable, except what replicas say of their containers.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "sconce/weights.h"
#include "src/runner/constants/constant_set.h"

namespace sconce::runner {

class HeldSet final : public WeightSet, public std::enable_shared_from_this<HeldSet> {
 public:
  // owner: the runner, so that no other uses it.
  HeldSet(const void* of, std::string name, uint64_t number, const ConstantTable& table,
          std::shared_ptr<const ConstantSet> constants, bool package)
      : WeightSet(std::move(name), number),
        owner(of),
        values(std::move(constants)),
        missing(values->missing(table)),
        reads_package(package) {}

  const void* const owner;
  const std::shared_ptr<const ConstantSet> values;
  const std::string_view missing;  // the first constant without a value; empty if none
  const bool reads_package;        // as Generation::reads_package

  // Replicas shall keep no container of it.
  void leave() const noexcept { gone_.store(true); }
  bool gone() const noexcept { return gone_.load(); }
  // A replica that makes a container counts it before it looks at gone(); who calls leave() looks at bound() after
  // that.
  void count_replicas(int change) const noexcept { replicas_.fetch_add(change); }
  bool bound() const noexcept { return replicas_.load() > 0; }

 private:
  mutable std::atomic<bool> gone_{false};
};

}  // namespace sconce::runner
