// Pushes new weights of a model to several servers: stages on all, then publishes on all or on none.
#pragma once

#include <functional>
#include <future>
#include <string>
#include <vector>

#include "server/client/admin_client.h"

namespace sconce::server::commands {

using namespace client;

struct PushOptions {
  std::string file, package_model;
  std::string model, version;  // version: empty for the one that is served
  std::string label;
  std::vector<std::string> ignore;
  bool partial = false, dry_run = false, check_finite = false;
};

// "/v2/admin/models/M/weights", with the version if given, and with an action after it.
std::string weights_target(const std::string& model, const std::string& version, std::string_view action = {});

// A request to each server, by its index, all at once on a thread each.
using Ask = std::function<Answer(size_t)>;
std::vector<std::future<Answer>> start_asking(size_t servers, const Ask& ask);
// The answers in the servers' order; waits for them.
std::vector<Answer> answers_of(std::vector<std::future<Answer>> running);
std::vector<Answer> ask_all(size_t servers, const Ask& ask);

// Prints a server's result, failures in red.
void report(const AdminClient& client, bool good, const std::string& text);

// Prints its progress. Returns 0 if the weights are published everywhere (for a dry run: would be), 1 if nowhere or
// only as printed. Throws for a file that cannot be used.
int push_weights(const std::vector<AdminClient>& servers, const PushOptions& options);

}  // namespace sconce::server::commands
