// Health: implements the service grpc.health.v1.Health.
#pragma once

#include <string_view>
#include <vector>

#include "sconce/mutex.h"

namespace sconce::server::rpc {

class Health {
 public:
  enum class Status { kUnknown = 0, kServing = 1, kNotServing = 2, kServiceUnknown = 3 };  // the protocol's numbers

  // A call that watches the status of a service.
  class Watcher {
   public:
    // The status has changed, or the server shuts down. Called under a mutex of Health.
    virtual void changed(Status status, bool ends) noexcept = 0;

   protected:
    ~Watcher() = default;

   private:
    friend class Health;
    bool known_ = false;
  };

  Status of(std::string_view service) const noexcept;
  void set(bool ready) noexcept;
  // Notifies the watcher at once, and of each change until remove(), after which it is not called. std::bad_alloc
  void add(Watcher& watcher, std::string_view service);
  void remove(Watcher& watcher) noexcept;
  // Ends all watching calls.
  void end() noexcept;

 private:
  Status status() const noexcept SCONCE_REQUIRES(mutex_) { return ready_ ? Status::kServing : Status::kNotServing; }
  void tell(Watcher& watcher) const noexcept SCONCE_REQUIRES(mutex_);

  mutable Mutex mutex_;
  bool ready_ SCONCE_GUARDED_BY(mutex_) = false, ended_ SCONCE_GUARDED_BY(mutex_) = false;
  std::vector<Watcher*> watchers_ SCONCE_GUARDED_BY(mutex_);
};

}  // namespace sconce::server::rpc
