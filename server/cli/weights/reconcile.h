// Reconciles servers after an interrupted push (docs/pushes.md).
#pragma once

#include <string>
#include <vector>

#include "server/cli/weights/servers.h"

namespace sconce::server::cli {

struct ReconcileOptions {
  const std::vector<http::AdminClient>& servers;
  std::string model, version;
  std::vector<std::string> gone = {};  // servers of a push that will not come back
  std::string from = {}, file = {};    // the server whose active set all others must get; a file with that set
  std::string package_model = {};
  std::string set = {};  // the named set to compare; empty: the active set
};

// Decides the open pushes on all servers by the rule in docs/pushes.md, and executes the decisions. Returns whether
// all servers answered and no push is open; prints the reason if not.
bool reconcile_open(const ReconcileOptions& options);

// Likewise, and then sends the chosen set to the servers that have another one. Returns 0 if all serve the same set.
int reconcile_weights(const ReconcileOptions& options);

}  // namespace sconce::server::cli
