// WeightChecker: whether a model's active weights are those of an earlier moment, tensor by tensor, by their SHA-256;
// and what one of its tensors begins with. Thread-safe.
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

namespace sconce::server {

class WeightChecker {
 public:
  // By name: 64 hexadecimal digits each.
  using Checksums = std::map<std::string, std::string>;
  // Called every now and then: what it throws ends the reading.
  using Check = std::function<void()>;

  // Names that the two do not have with one checksum, in order.
  static std::vector<std::string> differing(const Checksums& before, const Checksums& now);
  // Of the active set's stored constants. Reads all values.
  static Checksums checksums_of(const ServedModel& served, const Check& check);
  // Remembers those of the model, in the place of earlier ones. Of kMaxModels models: the one that was remembered
  // first is forgotten.
  void snapshot(const ServedModel& served, const Check& check);
  // kFailedPrecondition if nothing is remembered of the model; Refused names tensors that differ.
  void compare(const ServedModel& served, const Check& check) const;

  static constexpr size_t kMaxModels = 16;

 private:
  mutable Mutex mutex_;
  std::deque<std::pair<std::string, Checksums>> snapshots_ SCONCE_GUARDED_BY(mutex_);  // by the models' names
};

// The first `rows` rows of a constant of the active set, in nested lists of JSON as Tensor.tolist() has them.
// kInvalidArgument for an unknown name, a dtype without numbers, and more elements than kMaxShown.
std::string first_rows(const ServedModel& served, std::string_view name, uint64_t rows);
constexpr uint64_t kMaxShown = uint64_t{1} << 22;

}  // namespace sconce::server
