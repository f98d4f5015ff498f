// Pushes new weights of a model to several servers: stages on all, then publishes on all or on none (docs/weights.md).
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "server/cli/weights/servers.h"

namespace sconce::server::commands {

struct PushOptions {
  std::string file, package_model;
  std::string model, version;  // version: empty for the one that is served
  std::string label;
  std::string set;  // the named set to fill; empty: the model's own weights
  std::vector<std::string> ignore;
  bool partial = false, dry_run = false, check_finite = false, relay = false;
  std::chrono::milliseconds lease{30'000};
  std::string sign;    // the file of a private key that signs what is sent; empty: it is not signed
  std::string digest;  // what the staged set must have, if it is not empty
  // How long servers watch the weights, and the bounds of that, as in settings.def; empty: as the models are set.
  std::string guard, guard_errors, guard_nan, guard_p99;
};

// Prints its progress. With `guard`, waits until the watch is over, and rolls back everywhere if one server did.
// Returns 0 if the weights are published everywhere (for a dry run: would be), 1 if nowhere or only as printed. Throws
// for a file that cannot be used.
int push_weights(const std::vector<AdminClient>& servers, const PushOptions& options);

}  // namespace sconce::server::commands
