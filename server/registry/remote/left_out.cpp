// The functions of this room, for a build without it (server/support/left_out.h).
#include "server/support/left_out.h"

#include <algorithm>

#include "server/registry/remote/pull.h"
#include "server/registry/remote/remote_sources.h"
#include "server/registry/remote/serve_argument.h"

namespace sconce::server::registry {
namespace {

const LeftOut kRemoteStores("remote stores", "SCONCE_REMOTE_STORES",
                            {"remote_cache", "remote_cache_size", "remote_watch", "remote_connections", "remote_stall",
                             "remote_ca", "pull"});

}  // namespace

std::unique_ptr<RemoteSources> RemoteSources::of(const ServerConfig& config) {
  const bool any = std::any_of(config.serve.begin(), config.serve.end(),
                               [](const std::string& argument) { return ServeArgument(argument).is_remote(); });
  if (any) kRemoteStores.fail("setting serve: an address");
  return nullptr;
}

void pull(const PullOptions&, const Pulled&) { kRemoteStores.fail(); }

}  // namespace sconce::server::registry
