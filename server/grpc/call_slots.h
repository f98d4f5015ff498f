// CallSlots: counters and snapshots for threads that gRPC starts and ends. A thread takes a slot for each step of a
// call, and meanwhile is the only one with its index. There are more indexes than threads of gRPC that answer, so slots
// rarely wait for each other.
#pragma once

#include <array>
#include <atomic>

#include "sconce/mutex.h"
#include "server/http/access/credentials.h"
#include "server/registry/repository.h"
#include "server/support/cached_snapshot.h"

namespace sconce::server::rpc {

class CallSlots {
  struct alignas(64) Place {
    Mutex mutex;
    CachedSnapshot<registry::Catalog> catalog;
    CachedSnapshot<http::CredentialSet> credentials;
  };

 public:
  static constexpr size_t kPlaces = 16;

  // first: index of the first place in the models' counters.
  CallSlots(const registry::Repository& repository, const http::Credentials& credentials, size_t first)
      : repository_(repository), credentials_(credentials), first_(first) {}

  // Drops snapshots of unused places, so that they do not keep unloaded models alive.
  void drop_old_catalogs() noexcept {
    for (Place& place : places_) {
      if (!place.mutex.try_lock()) continue;
      const MutexLock lock(place.mutex, std::adopt_lock);
      place.catalog.drop_unless_current(repository_);
    }
  }

  class Slot {
   public:
    explicit Slot(CallSlots& slots) : slots_(slots), at_(mine()), lock_(slots.places_[at_].mutex) {}
    size_t index() const noexcept { return slots_.first_ + at_; }
    // Valid while the slot is held.
    const registry::Catalog& catalog() { return slots_.places_[at_].catalog.of(slots_.repository_); }
    const http::CredentialSet& credentials() { return slots_.places_[at_].credentials.of(slots_.credentials_); }

   private:
    static size_t mine() noexcept {
      static std::atomic<size_t> next{0};
      thread_local const size_t place = next.fetch_add(1, std::memory_order_relaxed) % kPlaces;
      return place;
    }
    CallSlots& slots_;
    const size_t at_;
    const MutexLock lock_;
  };

 private:
  const registry::Repository& repository_;
  const http::Credentials& credentials_;
  const size_t first_;
  std::array<Place, kPlaces> places_;
};

}  // namespace sconce::server::rpc
