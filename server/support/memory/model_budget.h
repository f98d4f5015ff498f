// ModelBudget: how many bytes loaded models take of the host and of each device, and which of them to unload so that
// another one fits. It counts and chooses; others load and unload. Thread-safe.
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

  // Limits of the host and of each device by itself; 0: none.
  ModelBudget(uint64_t host, uint64_t device) noexcept : host_(host), device_(device) {}

  // Called, with no lock held, when something was given back. Before other threads use this; must not throw.
  void on_room(std::function<void()> hook) { hook_ = std::move(hook); }

  bool limited() const noexcept { return host_ > 0 || device_ > 0; }
  uint64_t limit(int device) const noexcept { return device == kHost ? host_ : device_; }

  // What a loaded version takes. The name's reservation ends.
  void loaded(const std::string& name, int64_t version, Bytes bytes);
  void unloaded(const std::string& name, int64_t version);
  // Counts bytes for a model that is about to be loaded. Returns false if they do not fit beside what is loaded.
  bool reserve(const std::string& name, const Bytes& bytes);
  void release(const std::string& name);  // the reservation, if there is one
  // What there is too little of for `bytes`.
  Bytes missing(const Bytes& bytes) const;
  // Whether more is loaded than the limits allow.
  bool exceeded() const;
  // kOutOfMemory if `bytes` are more than the limits allow for everything together.
  void check(std::string_view name, const Bytes& bytes) const;
  // Those to unload, least recently used first, so that `bytes` fit. Leaves out models that would give nothing of what
  // is short. If all of them together give too little, returns none.
  std::vector<std::string> victims(const Bytes& bytes, std::vector<Candidate> candidates) const;

  Bytes used() const;  // kHost is always there
  Bytes of(std::string_view name) const;

 private:
  using Models = std::map<std::string, std::map<int64_t, Bytes>, std::less<>>;
  // Bytes of each kind that would be missing.
  Bytes shortage(const Bytes& wanted) const SCONCE_REQUIRES(mutex_);
  void count(const Bytes& bytes) SCONCE_REQUIRES(mutex_);
  void discount(const Bytes& bytes) noexcept SCONCE_REQUIRES(mutex_);

  const uint64_t host_, device_;
  std::function<void()> hook_;
  mutable Mutex mutex_;
  Models models_ SCONCE_GUARDED_BY(mutex_);
  std::map<std::string, Bytes, std::less<>> reserved_ SCONCE_GUARDED_BY(mutex_);
  Bytes used_ SCONCE_GUARDED_BY(mutex_);  // with reservations
};

}  // namespace sconce::server
