// RemoteSources: the addresses among what `serve` names, as repositories in folders here, which are looked at again and
// again.
//
//   RemoteRepository, one for each address ---view, bring---> PackageFinder
//         ^                        |
//         +-- each remote_watch    +-- what has changed --> ModelLoader
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
  // null if the settings name no address. First looks at each (RemoteRepository::begin). kInvalidArgument for an
  // address; with exit_on_error, whatever keeps one from being known, unless something of it is here from earlier.
  static std::unique_ptr<RemoteSources> of(const ServerConfig& config);
  ~RemoteSources() { stop(); }
  RemoteSources(const RemoteSources&) = delete;
  RemoteSources& operator=(const RemoteSources&) = delete;

  // The settings with folders in the place of addresses.
  ServerConfig with_folders(ServerConfig config) const;
  PackageFinder::RemoteFolders folders() const;
  // From now on sources are looked at again and again, if the settings say so or nothing of one is known yet.
  // looked: after each look that found something else than before. unknown: an address of which no model is known, and
  // why; empty: they are known now.
  using Unknown = std::function<void(const std::string& address, const std::string& reason)>;
  void start(std::function<void()> looked, Unknown unknown);
  // Looks now. Any thread.
  void look_now();
  // Ends downloads, of any thread, with kCancelled. Any thread.
  void cancel() noexcept;
  // The same, and waits until nothing is told any more.
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
  std::vector<size_t> places_;  // of each in the setting `serve`
  std::function<void()> looked_;
  Unknown unknown_;
  uint64_t changes_ = 0;           // that were told
  std::vector<std::string> told_;  // the reason of each that was told last
  Mutex mutex_;
  ConditionVariable wake_;
  bool wanted_ SCONCE_GUARDED_BY(mutex_) = false;  // a look
  std::thread thread_;
};

}  // namespace sconce::server
