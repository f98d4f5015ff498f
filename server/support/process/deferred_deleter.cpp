#include "server/support/process/deferred_deleter.h"

namespace sconce::server {

DeferredDeleter::DeferredDeleter() {
  thread_ = std::thread([this] { run(); });
}

DeferredDeleter::~DeferredDeleter() {
  take(&end_);
  thread_.join();
}

void DeferredDeleter::take(DeletedLater* object) noexcept {
  if (!object) return;
  object->next_ = taken_.load(std::memory_order_relaxed);
  while (!taken_.compare_exchange_weak(object->next_, object, std::memory_order_release, std::memory_order_relaxed)) {
  }
  taken_.notify_one();
}

void DeferredDeleter::run() noexcept {
  bool ending = false;
  for (;;) {
    // Destroying one object may drop others.
    DeletedLater* object = taken_.exchange(nullptr, std::memory_order_acquire);
    if (!object) {
      if (ending) return;
      taken_.wait(nullptr);
      continue;
    }
    while (object) {
      DeletedLater* const next = object->next_;
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
