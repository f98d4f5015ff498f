// RemoteSources: the remote addresses in `serve`, as repositories in local folders, which are polled.
//
//   RemoteRepository, one for each address ---view, bring---> PackageFinder
//         ^                        |
//         +-- each remote_watch    +-- changes --> ModelLoader
//
// Thread-safe after start().
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "server/registry/remote/remote_counters.h"
#include "server/registry/repositories/package_finder.h"
#include "server/support/config.h"

namespace sconce::server::registry {

class RemoteSources {
 public:
  // Null if the settings name no address. First polls each address (RemoteRepository::begin). kInvalidArgument for an
  // invalid address. With exit_on_error, throws if the models of an address are unknown, unless local copies exist.
  static std::unique_ptr<RemoteSources> of(const ServerConfig& config);
  virtual ~RemoteSources() = default;

  // The settings with local folders in place of addresses.
  virtual ServerConfig with_folders(ServerConfig config) const = 0;
  virtual PackageFinder::RemoteFolders folders() const = 0;
  // Starts polling, if the settings ask for it or an address is still unknown. looked: called after each poll that
  // found a change. unknown: called with an address whose models are unknown, and the reason; with an empty reason,
  // they are known now.
  using Unknown = std::function<void(const std::string& address, const std::string& reason)>;
  virtual void start(std::function<void()> looked, Unknown unknown) = 0;
  // Polls now. Any thread.
  virtual void look_now() = 0;
  // Aborts downloads on all threads with kCancelled. Any thread.
  virtual void cancel() noexcept = 0;
  // Likewise, and waits until no callback is running.
  virtual void stop() noexcept = 0;
  virtual const RemoteCounters& counters() const noexcept = 0;
};

}  // namespace sconce::server::registry
