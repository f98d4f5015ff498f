// CachedText: a long text that many ask for and that changes seldom. Thread-safe; nobody waits for whoever makes it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "sconce/mutex.h"

namespace sconce::server {

class CachedText {
 public:
  using Clock = std::chrono::steady_clock;

  // longest: how old a text may be that is of the same revision.
  explicit CachedText(Clock::duration longest) noexcept : longest_(longest) {}

  // Null if there is none of this revision that is young enough.
  std::shared_ptr<const std::string> find(uint64_t revision, Clock::time_point now) const {
    const MutexLock lock(mutex_);
    return text_ && revision_ == revision && now - made_ < longest_ ? text_ : nullptr;
  }
  // made: before what it says was looked at.
  void keep(uint64_t revision, Clock::time_point made, std::shared_ptr<const std::string> text) {
    const MutexLock lock(mutex_);
    if (text_ && made < made_) return;  // another thread has made a later one
    text_ = std::move(text);
    revision_ = revision;
    made_ = made;
  }

 private:
  const Clock::duration longest_;
  mutable Mutex mutex_;
  std::shared_ptr<const std::string> text_ SCONCE_GUARDED_BY(mutex_);
  uint64_t revision_ SCONCE_GUARDED_BY(mutex_) = 0;
  Clock::time_point made_ SCONCE_GUARDED_BY(mutex_){};
};

}  // namespace sconce::server
