// New weights for a model on several servers: staged on all, then published on all, or on none.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "server/commands/admin_client.h"

namespace sconce::server::commands {

struct PushOptions {
  std::string file, package_model;
  std::string model, version;  // version: empty for the one that is served
  std::string label;
  std::vector<std::string> ignore;
  bool partial = false, dry_run = false, check_finite = false;
};

// "/v2/admin/models/M/weights", with the version if there is one, and an action behind it.
std::string weights_target(const std::string& model, const std::string& version, std::string_view action = {});

// Prints what happens. 0: published everywhere (or would be, for a dry run); 1: nowhere, or as far as what is printed
// says. Throws for a file that cannot be used.
int push_weights(const std::vector<AdminClient>& servers, const PushOptions& options);

}  // namespace sconce::server::commands
