// `sconce weights`: uses the admin ports of running servers.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <functional>
#include <future>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "sconce/check.h"
#include "server/cli/command.h"
#include "server/cli/weights/diff.h"
#include "server/cli/weights/golden.h"
#include "server/cli/weights/push.h"
#include "server/cli/weights/reconcile.h"
#include "server/rollout/push/push_terms.h"
#include "server/support/terminal/text.h"

namespace sconce::server::cli {
namespace {

using Json = nlohmann::ordered_json;

struct WeightsOptions {
  std::vector<std::string> to;
  std::string token_file, ca, certificate, key;
  int patience_s = 300;
  PushOptions push;
  std::string lease, from;
  std::vector<std::string> gone;
  DiffOptions diff;
  GoldenOptions golden;
  bool every_address = false;
  bool json = false, digest = false;
};

// Checks --to and related options, without contacting servers.
void check_servers(const WeightsOptions& options) {
  std::vector<std::string> seen;
  for (const std::string& text : options.to) {
    const http::AdminServer server = http::parse_admin_server(text);
    const std::string place = server.host + ":" + server.port + server.prefix;
    SCONCE_CHECK(std::find(seen.begin(), seen.end(), place) == seen.end(), kInvalidArgument,
                 "--to: a server is named twice: ", text);
    seen.push_back(place);
  }
  SCONCE_CHECK(options.certificate.empty() == options.key.empty(), kInvalidArgument,
               "--certificate and --key go together");
}

void check_push(const WeightsOptions& options) {
  check_servers(options);
  if (!options.lease.empty()) rollout::parse_lease(options.lease);
  const PushOptions& push = options.push;
  SCONCE_CHECK(push.set.empty() || (push.guard + push.guard_errors + push.guard_nan + push.guard_p99).empty(),
               kInvalidArgument, "--guard does not go with --set: a named set is not watched");
}

void check_reconcile(const WeightsOptions& options) {
  check_servers(options);
  if (!options.from.empty()) http::parse_admin_server(options.from);
  for (const std::string& gone : options.gone) http::parse_admin_server(gone);
}

void check_golden(const WeightsOptions& options) {
  check_servers(options);
  SCONCE_CHECK(options.to.size() == 1, kInvalidArgument, "--to names ", options.to.size(), " servers: one is recorded");
}

std::vector<http::AdminClient> clients_of(const WeightsOptions& options) {
  const std::string token = http::read_token(options.token_file);
  std::optional<http::ClientTls> tls;
  std::vector<http::AdminClient> clients;
  std::vector<std::string> seen;
  for (const std::string& text : options.to) {
    const http::AdminServer named = http::parse_admin_server(text);
    for (const http::AdminServer& server : options.every_address ? http::every_address(named) : std::vector{named}) {
      const std::string place =
          (server.address.empty() ? server.host : server.address) + ":" + server.port + server.prefix;
      SCONCE_CHECK(std::find(seen.begin(), seen.end(), place) == seen.end(), kInvalidArgument,
                   "a server is named twice: ", server.text);
      seen.push_back(place);
      // OpenSSL would raise it when it writes to a closed connection.
      if (server.tls) std::signal(SIGPIPE, SIG_IGN);
      if (server.tls && !tls) tls = http::checked_tls(options.ca, options.certificate, options.key);
      clients.emplace_back(server, token, std::chrono::seconds(options.patience_s), tls.value_or(http::ClientTls()));
    }
  }
  return clients;
}

// A member as text, whatever its type; "" for null or an absent member.
std::string text_of(const Json& object, const char* key) {
  const auto at = object.find(key);
  if (at == object.end() || at->is_null()) return "";
  return at->is_string() ? at->get<std::string>() : at->dump();
}

void print_sets(const http::AdminClient& client, const Json& document) {
  std::cout << bold(client.server().text) << "  " << text_of(document, "model") << " version "
            << text_of(document, "version") << "\n";
  for (const Json& set : document.value("sets", Json::array())) {
    if (!set.is_object()) continue;
    const auto bytes = set.find("bytes");
    // A server of the release before has only the former name.
    const std::string weight_version = text_of(set, set.contains("weight_version") ? "weight_version" : "generation");
    const std::string digest = text_of(set, "digest");
    std::cout << fmt::format(
        "  {:<9} {:>6}  {:>9}  {}  {}{}\n", text_of(set, "state"), weight_version.empty() ? "-" : weight_version,
        bytes != set.end() && bytes->is_number_unsigned() ? format_bytes(bytes->get<uint64_t>()) : std::string(),
        text_of(set, "since"), text_of(set, "label"), digest.empty() ? "" : "  " + digest);
  }
}

int status(const WeightsOptions& options) {
  const std::vector<http::AdminClient> clients = clients_of(options);
  const std::string target =
      weights_target(options.push.model, options.push.version, options.digest ? "?digest=true" : "");
  const std::vector<http::Answer> answers = ask_all(clients.size(), [&](size_t i) { return clients[i].get(target); });
  bool good = true;
  Json all = Json::array();
  for (size_t i = 0; i < answers.size(); ++i) {
    const Json document = Json::parse(answers[i].body, nullptr, false);
    const bool ok = answers[i].ok() && document.is_object();
    good &= ok;
    if (options.json)
      all.push_back(ok ? Json{{"server", clients[i].server().text}, {"weights", document}}
                       : Json{{"server", clients[i].server().text}, {"error", answers[i].reason()}});
    else if (ok)
      print_sets(clients[i], document);
    else
      report(clients[i], false, answers[i].reason());
  }
  if (options.json) std::cout << all.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
  return good ? 0 : 1;
}

bool has_previous(const http::Answer& answer) {
  const Json document = Json::parse(answer.body, nullptr, false);
  if (!answer.ok() || !document.is_object()) return false;
  for (const Json& set : document.value("sets", Json::array()))
    if (set.is_object() && text_of(set, "state") == "previous") return true;
  return false;
}

int rollback(const WeightsOptions& options) {
  const std::vector<http::AdminClient> clients = clients_of(options);
  const auto target = [&](const char* action) {
    return weights_target(options.push.model, options.push.version, action);
  };
  // Check all servers first, so that none is changed if another one cannot be.
  const std::vector<http::Answer> sets = ask_all(clients.size(), [&](size_t i) { return clients[i].get(target("")); });
  bool ready = true;
  for (size_t i = 0; i < sets.size(); ++i) {
    if (has_previous(sets[i])) continue;
    ready = false;
    report(clients[i], false, sets[i].ok() ? "has no previous weights" : sets[i].reason());
  }
  if (!ready) {
    std::cout << "no server has changed\n";
    return 1;
  }
  const std::vector<http::Answer> answers =
      ask_all(clients.size(), [&](size_t i) { return clients[i].post(target("/rollback")); });
  bool good = true;
  for (size_t i = 0; i < answers.size(); ++i) {
    good &= answers[i].ok();
    if (const std::optional<Active> active = active_of(answers[i]))
      report(clients[i], true, fmt::format("serves {} as weight version {}", active->version, active->weight_version));
    else if (answers[i].ok())
      report(clients[i], true, "has rolled back");
    else
      report(clients[i], false, "did not roll back: " + answers[i].reason());
  }
  return good ? 0 : 1;
}

void add_server_options(CommandLine& app, WeightsOptions& options) {
  app.option("--model", options.push.model, "Name of the model").required();
  app.option("--model-version", options.push.version, "Its version; without, the one that is served");
  app.option("--to", options.to, "Admin ports: http://host:8003,https://other:8003").required().listed();
  app.flag("--every-address", options.every_address,
           "Each address that a host's name stands for is a server, such as the pods of a headless service");
  app.option("--token-file", options.token_file, "File whose first line is the admin port's token");
  app.option("--ca", options.ca, "Certificates in PEM to trust for https; without, the system's");
  app.option("--certificate", options.certificate, "Certificate in PEM to show to servers that ask for one");
  app.option("--key", options.key, "Its private key");
  app.option("--patience", options.patience_s, "Longest wait for a silent server, in seconds").positive();
}

}  // namespace

Action add_weights(CommandLine& app) {
  auto options = std::make_shared<WeightsOptions>();
  CommandLine push = app.subcommand("push", "Stage new weights on all servers, then publish them on all, or on none");
  push.option("FILE", options->push.file,
              "A .safetensors, .npz or .npy file, or a .pt2 package whose weights are taken")
      .required();
  add_server_options(push, *options);
  push.option("--label", options->push.label, "Shown with answers in place of the weight version");
  push.option("--set", options->push.set, "The named set to fill, in place of the model's own weights")
      .placeholder("NAME");
  push.option("--package-model", options->push.package_model, "Which model of a package");
  push.flag("--partial", options->push.partial, "Tensors that the file lacks are not changed");
  push.option("--ignore", options->push.ignore,
              "Names that the file has and the models have not, since the compiler wrote them into the code")
      .placeholder("NAME,...")
      .listed()
      .one_each();
  push.flag("--check-finite", options->push.check_finite, "Refuse weights that are NaN or infinite");
  push.flag("--relay", options->push.relay,
            "Send them to the first server, which passes them on to the next one and so on (setting weights_peers)");
  push.option("--lease", options->lease, "How long servers keep staged weights without a message from this command")
      .placeholder("TIME");
  push.option("--guard", options->push.guard,
              "Guard the new weights for this time, and roll all servers back if they exceed a bound on one")
      .placeholder("TIME");
  push.option("--guard-errors", options->push.guard_errors, "The share of requests that may fail in the model");
  push.option("--guard-nan", options->push.guard_nan, "The share of answers that may have a NaN");
  push.option("--guard-p99", options->push.guard_p99, "The time within which 99 of 100 requests must be answered")
      .placeholder("TIME");
  push.option("--sign", options->push.sign,
              "Sign the upload with this private key in PEM, for servers with require_signature")
      .placeholder("KEY");
  push.flag("--dry-run", options->push.dry_run, "Send and check everything, change nothing");
  push.checked([options] { check_push(*options); });
  CommandLine state = app.subcommand("status", "Show the sets of weights of all servers");
  add_server_options(state, *options);
  state.flag("--digest", options->digest, "Show the digest of each set, which reads all of its values");
  state.flag("--json", options->json, "As JSON");
  state.checked([options] { check_servers(*options); });
  CommandLine back = app.subcommand("rollback", "Publish the previous weights again on all servers");
  add_server_options(back, *options);
  back.checked([options] { check_servers(*options); });
  CommandLine reconcile = app.subcommand("reconcile", "Reconcile servers after an interrupted push");
  reconcile.option("FILE", options->push.file,
                   "The weights that count, for servers that have lost them; without, they are fetched from a server");
  add_server_options(reconcile, *options);
  reconcile.option("--from", options->from,
                   "The server whose weights all servers get; default: the one that published last");
  reconcile.option("--gone", options->gone, "Servers of the push that will not come back").listed();
  reconcile.option("--set", options->push.set, "The named set to compare, in place of the active weights")
      .placeholder("NAME");
  reconcile.option("--package-model", options->push.package_model, "Which model of a package");
  reconcile.checked([options] { check_reconcile(*options); });
  app.former_subcommand("settle", "sconce weights reconcile");  // deprecated
  CommandLine diff = app.subcommand("diff", "Show how far the tensors of two files of weights are apart");
  diff.option("A", options->diff.a, "A .safetensors, .npz or .npy file, or a .pt2 package").required();
  diff.option("B", options->diff.b, "The file to compare with it").required();
  diff.option("--package-model", options->diff.package_model, "Which model of a package");
  diff.flag("--all", options->diff.all, "Show tensors that are equal, too");
  diff.flag("--json", options->diff.json, "As JSON");
  CommandLine golden = app.subcommand("golden", "Record live requests and answers of a server, for the setting golden");
  add_server_options(golden, *options);
  golden.option("--requests", options->golden.requests, "How many");
  golden.option("--out", options->golden.out, "The .safetensors file to write").required();
  golden.option("--for", options->golden.longest_s, "Stop recording after this number of seconds; 0: wait for all");
  golden.checked([options] { check_golden(*options); });
  app.footer(
      "Exit status of diff: 0 all tensors are equal, 1 some are not, 2 a file cannot be read. Of the others: 0 done on "
      "every server, 1 refused or failed (what is printed says where), 2 wrong usage or a file "
      "that cannot be read.");
  return [options, push, state, reconcile, diff, golden] {
    if (diff.parsed()) return diff_weights(options->diff);
    if (golden.parsed()) {
      const std::vector<http::AdminClient> clients = clients_of(*options);
      SCONCE_CHECK(clients.size() == 1, kInvalidArgument, "--every-address finds ", clients.size(),
                   " servers: one is recorded");
      options->golden.model = options->push.model;
      options->golden.version = options->push.version;
      return record_golden(clients.front(), options->golden);
    }
    if (!options->lease.empty()) options->push.lease = rollout::parse_lease(options->lease);
    if (push.parsed()) return push_weights(clients_of(*options), options->push);
    if (reconcile.parsed()) {
      const std::vector<http::AdminClient> clients = clients_of(*options);
      return reconcile_weights({clients, options->push.model, options->push.version, options->gone, options->from,
                                options->push.file, options->push.package_model, options->push.set});
    }
    return state.parsed() ? status(*options) : rollback(*options);
  };
}

}  // namespace sconce::server::cli
