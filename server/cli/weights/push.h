// Pushes new weights of a model to several servers: stages on all, then publishes on all or none (docs/pushes.md).
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "server/cli/weights/servers.h"

namespace sconce::server::cli {

struct PushOptions {
  std::string file, package_model;
  std::string model, version;  // version: empty for the served one
  std::string label;
  std::string set;  // the named set to fill; empty: the model's own weights
  std::vector<std::string> ignore;
  bool partial = false, dry_run = false, check_finite = false, relay = false;
  std::chrono::milliseconds lease{30'000};
  std::string sign;    // file with a private key to sign the upload; empty: not signed
  std::string digest;  // required digest of the staged set; empty: any
  // Duration and bounds of the guard on the servers, as in settings.def; empty: the models' settings.
  std::string guard, guard_errors, guard_nan, guard_p99;
};

// Prints its progress. With `guard`, waits until the guard has ended, and rolls back on all servers if one did. Returns
// 0 if the weights are published on all servers (for a dry run: would be), 1 if on none or only on those printed.
// Throws for a file that cannot be used.
int push_weights(const std::vector<http::AdminClient>& servers, const PushOptions& options);

}  // namespace sconce::server::cli
