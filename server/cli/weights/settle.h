// Brings servers that an interrupted push left divided to one answer (docs/weights.md).
#pragma once

#include <string>
#include <vector>

#include "server/cli/weights/servers.h"

namespace sconce::server::commands {

struct SettleOptions {
  const std::vector<AdminClient>& servers;
  std::string model, version;
  std::vector<std::string> gone = {};  // servers of a push that will not come back
  std::string from = {}, file = {};    // whose active set counts; where its bytes are
  std::string package_model = {};
  std::string set = {};  // the named set to compare; empty: the active one
};

// Decides the pushes that are open on any of the servers, as the rule says, and carries the decision out. Returns
// whether all servers answered and nothing is open any more; says why not.
bool settle_open(const SettleOptions& options);

// The same, and then gives the set that counts to the servers that have another one. Returns 0 if all serve one set.
int settle_weights(const SettleOptions& options);

}  // namespace sconce::server::commands
