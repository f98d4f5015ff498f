// Caches plans of CUDA's libraries by problem, because planning takes longer than solving most problems.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <unordered_map>
#include <utility>

#include "sconce/check.h"
#include "sconce/mutex.h"
#include "sconce/tensor.h"

namespace sconce::cuda {

// All values that a plan depends on.
struct PlanKey {
  std::array<int64_t, 48> values{};
  size_t count = 0;
  void add(int64_t value) {
    SCONCE_CHECK(count < values.size(), kUnsupported, "a plan on CUDA takes at most ", values.size(),
                 " sizes and strides");
    values[count++] = value;
  }
  void add(IntSpan list) {
    for (const int64_t value : list) add(value);
  }
  friend bool operator==(const PlanKey&, const PlanKey&) = default;
};
struct PlanKeyHash {
  size_t operator()(const PlanKey& key) const noexcept {
    size_t h = 0;
    for (size_t i = 0; i < key.count; ++i) h = (h ^ static_cast<size_t>(key.values[i])) * 0x9E3779B97F4A7C15u;
    return h;
  }
};

// Keeps the `most` plans that were used last. Thread-safe; an evicted plan lives as long as its users.
template <class Plan, class Key = PlanKey, class Hash = PlanKeyHash>
class PlanCache {
 public:
  explicit PlanCache(size_t most) : most_(most) {}

  // make() returns a shared_ptr<Plan>, which may be null; other threads wait meanwhile.
  template <class Make>
  std::shared_ptr<Plan> get(const Key& key, const Make& make) {
    const MutexLock lock(mutex_);
    if (const auto known = places_.find(key); known != places_.end()) {
      plans_.splice(plans_.begin(), plans_, known->second);
      return known->second->second;
    }
    std::shared_ptr<Plan> made = make();
    plans_.emplace_front(key, made);
    places_.emplace(key, plans_.begin());
    if (plans_.size() > most_) {
      places_.erase(plans_.back().first);
      plans_.pop_back();
    }
    return made;
  }

  // Until it is evicted, get() returns null for this key.
  void drop(const Key& key) {
    const MutexLock lock(mutex_);
    if (const auto known = places_.find(key); known != places_.end()) known->second->second = nullptr;
  }

 private:
  using Plans = std::list<std::pair<Key, std::shared_ptr<Plan>>>;
  const size_t most_;
  Mutex mutex_;
  Plans plans_ SCONCE_GUARDED_BY(mutex_);
  std::unordered_map<Key, typename Plans::iterator, Hash> places_ SCONCE_GUARDED_BY(mutex_);
};

}  // namespace sconce::cuda
