// RemoteSources: the remote addresses in `serve`, as repositories in local folders, which are polled.
//
//   RemoteRepository, one for each address ---view, bring---> PackageFinder
//         ^                        |
//         +-- each remote_watch    +-- changes --> ModelLoader
//
// Thread-safe after start().
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "sconce/mutex.h"
#include "server/registry/remote/remote_cache.h"
#include "server/registry/remote/remote_counters.h"
#include "server/registry/remote/remote_repository.h"
#include "server/registry/repositories/package_finder.h"
#include "server/support/config.h"

namespace sconce::server {

class RemoteSources {
 public:
  // Null if the settings name no address. First polls each address (RemoteRepository::begin). kInvalidArgument for an
  // invalid address. With exit_on_error, throws if the models of an address are unknown, unless local copies exist.
  static std::unique_ptr<RemoteSources> of(const ServerConfig& config);
  ~RemoteSources() { stop(); }
  RemoteSources(const RemoteSources&) = delete;
  RemoteSources& operator=(const RemoteSources&) = delete;

  // The settings with local folders in place of addresses.
  ServerConfig with_folders(ServerConfig config) const;
  PackageFinder::RemoteFolders folders() const;
  // Starts polling, if the settings ask for it or an address is still unknown. looked: called after each poll that
  // found a change. unknown: called with an address whose models are unknown, and the reason; with an empty reason,
  // they are known now.
  using Unknown = std::function<void(const std::string& address, const std::string& reason)>;
  void start(std::function<void()> looked, Unknown unknown);
  // Polls now. Any thread.
  void look_now();
  // Aborts downloads on all threads with kCancelled. Any thread.
  void cancel() noexcept;
  // Likewise, and waits until no callback is running.
  void stop() noexcept;
  const RemoteCounters& counters() const noexcept { return counters_; }

 private:
  explicit RemoteSources(const ServerConfig& config);
  void add(const std::string& argument, size_t place);
  void look_at_all();
  void look_is_over();
  void tell_unknown();
  bool all_known() const;
  uint64_t changes() const;
  void watch();

  const ServerConfig config_;
  const std::chrono::microseconds period_;
  std::atomic<bool> stop_{false};
  const TransferSettings transfer_;
  const RemoteAccess access_;
  RemoteCounters counters_;
  RemoteCache cache_;
  const RemoteShared shared_;
  std::vector<std::unique_ptr<RemoteRepository>> repositories_;
  std::vector<size_t> places_;  // index of each in the setting `serve`
  std::function<void()> looked_;
  Unknown unknown_;
  uint64_t changes_ = 0;           // number of reported changes
  std::vector<std::string> told_;  // the last reported reason of each
  Mutex mutex_;
  ConditionVariable wake_;
  bool wanted_ SCONCE_GUARDED_BY(mutex_) = false;  // a poll was requested
  std::thread thread_;
};

}  // namespace sconce::server
