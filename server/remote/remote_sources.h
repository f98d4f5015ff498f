// RemoteSources: the addresses among what `serve` names, as repositories in folders here.
//
//   address --list--> files of models --cache--> mirrors/URL/NAME.pt2 ---> PackageFinder, as any other repository
//              ^                                       |
//              +---- again each remote_watch ----------+--> inotify tells the control thread
//
// Without a connection, what the folder holds from earlier is served. Thread-safe after start().
#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "sconce/mutex.h"
#include "server/base/config.h"
#include "server/remote/remote_cache.h"
#include "server/remote/remote_counters.h"
#include "server/remote/remote_listing.h"
#include "server/remote/remote_url.h"

namespace sconce::server {

class RemoteSources {
 public:
  // null if the settings name no address. Brings everything here first. kInvalidArgument for an address; with
  // exit_on_error, whatever keeps a source from being fetched, unless its folder has something from earlier.
  static std::unique_ptr<RemoteSources> of(const ServerConfig& config);
  ~RemoteSources();
  RemoteSources(const RemoteSources&) = delete;
  RemoteSources& operator=(const RemoteSources&) = delete;

  // The settings with folders in the place of addresses.
  ServerConfig with_folders(ServerConfig config) const;
  // From now on sources are looked at again and again, if the settings say so.
  void start();
  const RemoteCounters& counters() const noexcept { return counters_; }

 private:
  struct Source {
    size_t place = 0;  // in the setting `serve`
    RemoteUrl url;
    std::string name;  // of a single package's model
    std::filesystem::path folder;
    std::string problem;  // of the last look; empty: it succeeded
  };

  explicit RemoteSources(const ServerConfig& config);
  void add(const std::string& argument, size_t place);
  bool look(Source& source);
  void look_at_package(const Source& source, const RemoteAccess& access);
  void look_at_repository(const Source& source, const RemoteAccess& access);
  void bring(const Source& source, const RemoteUrl& url, const RemoteAccess& access, const std::string& listed,
             const std::string& name);
  void look_at_all();
  void watch();
  DownloadOptions options();

  const std::chrono::microseconds period_;  // 0: never again
  const int connections_;
  const TransferSettings transfer_;
  RemoteCounters counters_;
  std::atomic<bool> stop_{false};
  RemoteCache cache_;
  std::vector<Source> sources_;
  Mutex mutex_;
  ConditionVariable wake_;
  std::thread thread_;
};

}  // namespace sconce::server
