#include "server/grpc/library/health.h"

#include <algorithm>

namespace sconce::server::rpc {
namespace {

bool is_known(std::string_view service) noexcept {
  return service.empty() || service == "inference.GRPCInferenceService";
}

}  // namespace

Health::Status Health::of(std::string_view service) const noexcept {
  if (!is_known(service)) return Status::kServiceUnknown;
  const MutexLock lock(mutex_);
  return status();
}

void Health::tell(Watcher& watcher) const noexcept {
  watcher.changed(watcher.known_ ? status() : Status::kServiceUnknown, ended_);
}

void Health::set(bool ready) noexcept {
  const MutexLock lock(mutex_);
  ready_ = ready;
  for (Watcher* const watcher : watchers_) tell(*watcher);
}

void Health::add(Watcher& watcher, std::string_view service) {
  const MutexLock lock(mutex_);
  watchers_.push_back(&watcher);
  watcher.known_ = is_known(service);
  tell(watcher);
}

void Health::remove(Watcher& watcher) noexcept {
  const MutexLock lock(mutex_);
  watchers_.erase(std::remove(watchers_.begin(), watchers_.end(), &watcher), watchers_.end());
}

void Health::end() noexcept {
  const MutexLock lock(mutex_);
  ended_ = true;
  for (Watcher* const watcher : watchers_) tell(*watcher);
}

}  // namespace sconce::server::rpc
