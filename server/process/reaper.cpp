#include "server/process/reaper.h"

namespace sconce::server {

Reaper::Reaper() {
  thread_ = std::thread([this] { run(); });
}

Reaper::~Reaper() {
  take(&end_);
  thread_.join();
}

void Reaper::take(Reaped* object) noexcept {
  if (!object) return;
  object->next_ = taken_.load(std::memory_order_relaxed);
  while (!taken_.compare_exchange_weak(object->next_, object, std::memory_order_release, std::memory_order_relaxed)) {
  }
  taken_.notify_one();
}

void Reaper::run() noexcept {
  bool ending = false;
  for (;;) {
    // Destroying one object may drop others.
    Reaped* object = taken_.exchange(nullptr, std::memory_order_acquire);
    if (!object) {
      if (ending) return;
      taken_.wait(nullptr);
      continue;
    }
    while (object) {
      Reaped* const next = object->next_;
      if (object == &end_) {
        ending = true;
      } else {
        delete object;
      }
      object = next;
    }
  }
}

}  // namespace sconce::server
