// WeightChecker: compares a model's active weights with a snapshot, tensor by tensor, by SHA-256; and returns the first
// rows of a tensor. Thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sconce/mutex.h"
#include "server/registry/served_model.h"

namespace sconce::server::rollout {

class WeightChecker {
 public:
  // By tensor name: 64 hexadecimal digits each.
  using Checksums = std::map<std::string, std::string>;
  // Called from time to time; an exception aborts the reading.
  using Check = std::function<void()>;

  // Names whose checksum differs or that only one side has, in order.
  static std::vector<std::string> differing(const Checksums& before, const Checksums& now);
  // Checksums of the active set's stored constants. Reads all values.
  static Checksums checksums_of(const registry::ServedModel& served, const Check& check);
  // Stores the checksums of the model, replacing earlier ones. At most kMaxModels models are stored; the oldest
  // snapshot is evicted.
  void snapshot(const registry::ServedModel& served, const Check& check);
  // kFailedPrecondition if the model has no snapshot; Refused names tensors that differ.
  void compare(const registry::ServedModel& served, const Check& check) const;

  static constexpr size_t kMaxModels = 16;

 private:
  mutable Mutex mutex_;
  std::deque<std::pair<std::string, Checksums>> snapshots_ SCONCE_GUARDED_BY(mutex_);  // by the model's name
};

// The first `rows` rows of a constant of the active set, as nested JSON lists like those of Tensor.tolist().
// kInvalidArgument for an unknown name, for a dtype without numbers, and for more than kMaxShown elements.
std::string first_rows(const registry::ServedModel& served, std::string_view name, uint64_t rows);
constexpr uint64_t kMaxShown = uint64_t{1} << 22;

}  // namespace sconce::server::rollout
