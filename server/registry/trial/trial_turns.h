// TrialTurns: how many child processes may try models at the same time. A load waits here for its turn, and both that
// and the wait for a child end at once when the server ends. Thread-safe.
#pragma once

#include <cstddef>

#include "sconce/mutex.h"
#include "server/support/files/descriptor.h"

namespace sconce::server {

class TrialTurns {
 public:
  // kIo if the kernel gives no descriptor.
  explicit TrialTurns(size_t most = 2);

  class Turn {
   public:
    explicit Turn(TrialTurns& turns) noexcept : turns_(turns) {}
    Turn(const Turn&) = delete;
    ~Turn() { turns_.give_back(); }

   private:
    TrialTurns& turns_;
  };
  // Waits for a turn. Returns false after stop(); then there is no Turn to make.
  bool take();
  // Takes a turn if there is one now, unless stop() was called.
  bool take_at_once() noexcept;
  // From now on nobody gets a turn, and the descriptor is readable. Once.
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
