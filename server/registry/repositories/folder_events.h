// FolderEvents: tells when something below some folders may have changed, so that nobody has to look again and again. A
// thread of its own waits for the kernel (inotify).
//
// It tells of one change, then waits until follow() is called again: so a folder in which somebody writes all the time
// wakes nobody more often than its owner looks. Thread-safe, but one thread at a time calls follow().
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <thread>

#include "sconce/mutex.h"

namespace sconce::server {

class FolderEvents {
 public:
  // changed: called on the thread. Must be quick and must not throw. kIo if the kernel gives no inotify.
  explicit FolderEvents(std::function<void()> changed);
  FolderEvents(const FolderEvents&) = delete;
  ~FolderEvents();

  // Follows the folders and all below them, those that have come since the last call too. Whoever looks at them after
  // this call is told of every later change. Returns why that is not so; empty: it is. A file system that other
  // machines write to as well is such a reason, and so is a limit of the kernel.
  std::string follow(std::span<const std::filesystem::path> folders);

 private:
  void run() noexcept;

  const std::function<void()> changed_;
  int events_ = -1, stop_ = -1;  // of inotify and eventfd
  Mutex mutex_;
  ConditionVariable wake_;
  bool armed_ SCONCE_GUARDED_BY(mutex_) = false, stopping_ SCONCE_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace sconce::server
