// FolderEvents: reports possible changes below some folders, so that nobody needs to poll them. Its own thread waits
// for the kernel (inotify).
//
// It reports one change, then pauses until follow() is called again. A folder with continuous writes therefore causes
// no more wake-ups than its owner's polls. Thread-safe, but only one thread at a time may call follow().
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <thread>

#include "sconce/mutex.h"

namespace sconce::server::registry {

class FolderEvents {
 public:
  // changed: called on the object's thread. Must be quick and must not throw. kIo if inotify is not available.
  explicit FolderEvents(std::function<void()> changed);
  FolderEvents(const FolderEvents&) = delete;
  ~FolderEvents();

  // Follows the folders and everything below them, including folders created since the last call. Every change after
  // this call is reported. Returns the reason why that cannot be guaranteed; empty: it is. Reasons are a file system
  // that other machines write to, and a kernel limit.
  std::string follow(std::span<const std::filesystem::path> folders);

 private:
  void run() noexcept;

  const std::function<void()> changed_;
  int events_ = -1, stop_ = -1;  // inotify and eventfd descriptors
  Mutex mutex_;
  ConditionVariable wake_;
  bool armed_ SCONCE_GUARDED_BY(mutex_) = false, stopping_ SCONCE_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace sconce::server::registry
