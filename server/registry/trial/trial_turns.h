// TrialTurns: limits the number of child processes that run trials. A load waits here for its turn. This wait, and the
// wait for a child, end at once at shutdown. Thread-safe.
#pragma once

#include <cstddef>

#include "sconce/mutex.h"
#include "server/support/files/descriptor.h"

namespace sconce::server {

class TrialTurns {
 public:
  // kIo if no descriptor is available.
  explicit TrialTurns(size_t most = 2);

  class Turn {
   public:
    explicit Turn(TrialTurns& turns) noexcept : turns_(turns) {}
    Turn(const Turn&) = delete;
    ~Turn() { turns_.give_back(); }

   private:
    TrialTurns& turns_;
  };
  // Waits for a turn. Returns false after stop(); then do not construct a Turn.
  bool take();
  // Takes a turn if one is free, unless stop() was called.
  bool take_at_once() noexcept;
  // From now on no turn is granted, and the descriptor is readable. Call this once.
  void stop() noexcept;
  int descriptor() const noexcept { return stop_.get(); }

 private:
  void give_back() noexcept;

  const Descriptor stop_;  // an eventfd
  Mutex mutex_;
  ConditionVariable wake_;
  size_t left_ SCONCE_GUARDED_BY(mutex_);
  bool stopped_ SCONCE_GUARDED_BY(mutex_) = false;
};

}  // namespace sconce::server
