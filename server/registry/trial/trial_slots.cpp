#include "server/registry/trial/trial_slots.h"

#include <sys/eventfd.h>

#include <cerrno>
#include <cstring>

#include "sconce/check.h"

namespace sconce::server::registry {

TrialSlots::TrialSlots(size_t most) : stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), left_(most) {
  SCONCE_CHECK(stop_.get() >= 0, kIo, "cannot wait for the shutdown of the server: ", std::strerror(errno));
}

bool TrialSlots::take() {
  const MutexLock lock(mutex_);
  while (left_ == 0 && !stopped_) wake_.wait(mutex_);
  if (stopped_) return false;
  --left_;
  return true;
}

bool TrialSlots::take_at_once() noexcept {
  const MutexLock lock(mutex_);
  if (left_ == 0 || stopped_) return false;
  --left_;
  return true;
}

void TrialSlots::stop() noexcept {
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
  }
  wake_.notify_all();
  ::eventfd_write(stop_.get(), 1);
}

void TrialSlots::give_back() noexcept {
  {
    const MutexLock lock(mutex_);
    ++left_;
  }
  wake_.notify_one();
}

}  // namespace sconce::server::registry
