// Functions that the subcommands of `sconce weights` share: requests to several servers in parallel, and the parsed
// answers about sets and pushes.
#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include "server/http/client/admin_client.h"

namespace sconce::server::cli {

// "/v2/admin/models/M/weights", with the version if given, and with an action.
std::string weights_target(const std::string& model, const std::string& version, std::string_view action = {});

// "/v2/admin/models/M/sets/NAME", with an action.
std::string set_target(const std::string& model, const std::string& version, const std::string& set,
                       std::string_view action = {});

// A request to each server, by its index, in parallel with one thread each.
using Ask = std::function<http::Answer(size_t)>;
std::vector<std::future<http::Answer>> start_asking(size_t servers, const Ask& ask);
// The answers in the servers' order; waits for them.
std::vector<http::Answer> answers_of(std::vector<std::future<http::Answer>> running);
std::vector<http::Answer> ask_all(size_t servers, const Ask& ask);

// Writes the body of a 200 to a file, atomically.
http::Answer fetch_file(const http::AdminClient& server, const std::string& target, const std::string& path);

// Prints a server's result, failures in red.
void report(const http::AdminClient& client, bool good, const std::string& text);

// The active set in the answer of GET .../weights.
struct Active {
  uint64_t weight_version = 0;
  std::string version = {};                         // label, or the weight version
  std::string label = {}, since = {}, digest = {};  // digest: if requested
};
std::optional<Active> active_of(const http::Answer& answer);
// A named set in the answer of GET .../sets/NAME; without a weight version and with the digest "absent" if the server
// does not have the set.
std::optional<Active> named_of(const http::Answer& answer);
// The digest of the staged set; empty if there is none.
std::string staged_digest(const http::Answer& answer);

// The guard of published weights in the answer of GET .../weights/guard.
struct Guard {
  std::string state, reason;
  uint64_t requests = 0;
};
std::optional<Guard> guard_of(const http::Answer& answer);

// A push in the answer of GET .../weights/pushes.
struct PushStatus {
  std::string id = {}, state = {}, set = {};  // set: a named set; empty: the model's own weights
  double expires_in = 0;
  uint64_t weight_version = 0;
  bool active = false;  // the server serves the set that the push, or its undo, published
  std::vector<std::string> members = {};
  size_t member = 0;
  bool open() const { return state == "receiving" || state == "staged" || state == "prepared"; }
  bool committed() const { return state == "committed"; }
  bool undone() const { return state == "undone"; }
  bool ended() const { return state == "aborted" || state == "expired"; }
};
struct ServerPushes {
  bool answered = false;
  std::string problem;  // why not
  std::vector<PushStatus> pushes;
  const PushStatus* find(const std::string& id) const;
};
ServerPushes pushes_of(const http::Answer& answer);

}  // namespace sconce::server::cli
