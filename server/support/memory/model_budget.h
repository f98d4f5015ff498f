// ModelBudget: the bytes of loaded models on the host and on each device, and which models to evict so that another one
// fits. It only counts and selects; callers load and unload. Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sconce/mutex.h"

namespace sconce::server {

class ModelBudget {
 public:
  static constexpr int kHost = -1;
  // By device; kHost for the host.
  using Bytes = std::map<int, uint64_t>;
  struct Candidate {
    std::string name;
    std::chrono::steady_clock::time_point last_use;
  };

  // Separate limits for the host and for each device; 0: no limit.
  ModelBudget(uint64_t host, uint64_t device) noexcept : host_(host), device_(device) {}

  // Called, with no lock held, when memory was released. Set it before other threads use this object; must not throw.
  void on_room(std::function<void()> hook) { hook_ = std::move(hook); }

  bool limited() const noexcept { return host_ > 0 || device_ > 0; }
  uint64_t limit(int device) const noexcept { return device == kHost ? host_ : device_; }

  // Sets the bytes of a loaded version, and ends the name's reservation.
  void loaded(const std::string& name, int64_t version, Bytes bytes);
  void unloaded(const std::string& name, int64_t version);
  // Reserves bytes for a model that is about to be loaded. Returns false if they do not fit beside the loaded models.
  bool reserve(const std::string& name, const Bytes& bytes);
  void release(const std::string& name);  // the reservation, if any
  // The memory that is missing for `bytes`.
  Bytes missing(const Bytes& bytes) const;
  // Whether the loaded models exceed the limits.
  bool exceeded() const;
  // kOutOfMemory if `bytes` alone exceed the limits.
  void check(std::string_view name, const Bytes& bytes) const;
  // The models to evict so that `bytes` fit, least recently used first. Skips models that would release nothing of the
  // missing kinds. Empty if all candidates together release too little.
  std::vector<std::string> victims(const Bytes& bytes, std::vector<Candidate> candidates) const;

  Bytes used() const;  // kHost is always present
  Bytes of(std::string_view name) const;

 private:
  using Models = std::map<std::string, std::map<int64_t, Bytes>, std::less<>>;
  // The missing bytes of each kind.
  Bytes shortage(const Bytes& wanted) const SCONCE_REQUIRES(mutex_);
  void count(const Bytes& bytes) SCONCE_REQUIRES(mutex_);
  void discount(const Bytes& bytes) noexcept SCONCE_REQUIRES(mutex_);

  const uint64_t host_, device_;
  std::function<void()> hook_;
  mutable Mutex mutex_;
  Models models_ SCONCE_GUARDED_BY(mutex_);
  std::map<std::string, Bytes, std::less<>> reserved_ SCONCE_GUARDED_BY(mutex_);
  Bytes used_ SCONCE_GUARDED_BY(mutex_);  // including reservations
};

}  // namespace sconce::server
