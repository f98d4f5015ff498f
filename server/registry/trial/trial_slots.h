// TrialSlots: limits the number of child processes that run trials. A load waits here for its slot. This wait, and the
// wait for a child, end at once at shutdown. Thread-safe.
#pragma once

#include <cstddef>

#include "sconce/mutex.h"
#include "server/support/files/descriptor.h"

namespace sconce::server::registry {

class TrialSlots {
 public:
  // kIo if no descriptor is available.
  explicit TrialSlots(size_t most = 2);

  class Slot {
   public:
    explicit Slot(TrialSlots& slots) noexcept : slots_(slots) {}
    Slot(const Slot&) = delete;
    ~Slot() { slots_.give_back(); }

   private:
    TrialSlots& slots_;
  };
  // Waits for a slot. Returns false after stop(); then do not construct a Slot.
  bool take();
  // Takes a slot if one is free, unless stop() was called.
  bool take_at_once() noexcept;
  // From now on no slot is granted, and the descriptor is readable. Call this once.
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

}  // namespace sconce::server::registry
