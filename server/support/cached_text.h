// CachedText: a long text with many readers that changes rarely. Thread-safe; no reader waits for the thread that makes
// the text.
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

  // longest: maximum age of a text of the current revision.
  explicit CachedText(Clock::duration longest) noexcept : longest_(longest) {}

  // Null if there is no text of this revision, or it is too old.
  std::shared_ptr<const std::string> find(uint64_t revision, Clock::time_point now) const {
    const MutexLock lock(mutex_);
    return text_ && revision_ == revision && now - made_ < longest_ ? text_ : nullptr;
  }
  // made: a time before the text's data were read.
  void keep(uint64_t revision, Clock::time_point made, std::shared_ptr<const std::string> text) {
    const MutexLock lock(mutex_);
    if (text_ && made < made_) return;  // another thread has stored a later one
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
