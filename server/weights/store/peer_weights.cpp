#include "server/weights/store/peer_weights.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <future>
#include <optional>
#include <random>

#include "sconce/check.h"
#include "sconce/weight_sources.h"
#include "server/http/client/admin_client.h"
#include "server/http/client/url_text.h"
#include "server/support/failure.h"
#include "server/support/json_cursor.h"
#include "server/support/log.h"
#include "server/support/request_id.h"
#include "server/support/trim.h"
#include "server/weights/store/set_fit.h"
#include "src/support/excerpt.h"

namespace sconce::server::weights {
namespace {

// An unreachable peer must not delay the start.
constexpr std::chrono::seconds kAskPatience{5}, kReadPatience{30};

struct Peer {
  http::AdminServer server;
  uint64_t weight_version = 0;
  std::string problem;  // why it cannot be used
};

std::string target_of(const StartingModel& start, const char* rest) {
  return http::admin_path(start.name, std::to_string(start.version)) + "/weights" + rest;
}

// Reads a set of the answer. 0: not the active one, or without its version.
uint64_t active_version_in(JsonCursor& json) {
  uint64_t weight_version = 0;
  bool active = false;
  json.object("a set", [&](std::string_view key) {
    if (key == "state")
      active = json.string("'state'") == "active";
    else if (key == "weight_version" && !json.consume_null())
      weight_version = json.unsigned_integer("'weight_version'");
    else if (key != "weight_version")
      json.skip();
  });
  return active ? weight_version : 0;
}

void ask(const StartingModel& start, const http::AdminClient& client, Peer& peer) {
  const http::Answer answer = client.get(target_of(start, ""), &start.ending);
  if (!answer.ok()) {
    peer.problem = answer.reason();
    return;
  }
  std::string instance;
  bool ready = false;
  uint64_t weight_version = 0;
  JsonCursor json(answer.body);
  json.object("its answer", [&](std::string_view key) {
    if (key == "instance")
      instance = json.string("'instance'");
    else if (key == "ready")
      ready = json.boolean("'ready'");
    else if (key == "generation")  // deprecated, and all that a server of the release before has
      weight_version = json.unsigned_integer("'generation'");
    else if (key == "sets")
      json.array("'sets'", [&](size_t) { weight_version = std::max(weight_version, active_version_in(json)); });
    else
      json.skip();
  });
  if (instance == instance_name())
    peer.problem = "is this server";
  else if (!ready)
    peer.problem = "is not ready";
  else
    peer.weight_version = weight_version;
}

// Refuses a set that does not fit before any of its values arrives.
class FittingUpdate final : public WeightUpdate {
 public:
  FittingUpdate(std::unique_ptr<WeightUpdate> update, std::vector<ConstantSpec> constants)
      : update_(std::move(update)), constants_(std::move(constants)) {}
  void declare(std::span<const WeightEntry> entries) override {
    const std::string unfit = misfit(entries, constants_);
    SCONCE_CHECK(unfit.empty(), kInvalidArgument, "its weights do not fit the package: ", unfit);
    update_->declare(entries);
  }
  std::span<std::byte> memory(size_t entry) override { return update_->memory(entry); }
  void complete(size_t entry) override { update_->complete(entry); }
  void set_label(std::string label) override { update_->set_label(std::move(label)); }
  void finish() override { update_->finish(); }

 private:
  const std::unique_ptr<WeightUpdate> update_;
  const std::vector<ConstantSpec> constants_;
};

// Takes over the peer's active set. Throws the reason of a failure.
void take(const StartingModel& start, const http::AdminClient& client, uint64_t newer_than) {
  std::unique_ptr<FittingUpdate> update;
  std::unique_ptr<WeightStream> stream;
  uint64_t weight_version = 0;
  std::string label, digest;
  const auto begin = [&](const http::AnswerHead& head, uint64_t bytes) {
    std::string number = head.field("sconce-weight-version");
    if (number.empty()) number = head.field("sconce-generation");  // deprecated, of a server of the release before
    std::from_chars(number.data(), number.data() + number.size(), weight_version);
    SCONCE_CHECK(weight_version > newer_than, kFailedPrecondition, "its weights are no longer newer");
    label = http::percent_decoded(head.field("sconce-weights-label"));
    digest = head.field("sconce-weights-digest");
    update = std::make_unique<FittingUpdate>(start.model.begin_update({.full = false, .label = label}),
                                             start.model.constants());
    stream = std::make_unique<WeightStream>(*update, StreamOptions{.source = client.server().text, .bytes = bytes});
  };
  const auto write = [&](std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const std::span<std::byte> room = stream->next();
      const size_t some = std::min(room.size(), bytes.size());
      std::memcpy(room.data(), bytes.data(), some);
      stream->advance(some);
      bytes = bytes.subspan(some);
    }
  };
  const http::Answer answer = client.download(target_of(start, "/active"), begin, write, &start.ending);
  SCONCE_CHECK(answer.ok(), kIo, answer.reason());
  stream->end();
  update->finish();
  const std::string found = start.model.weights_digest(WeightState::kStaged);
  if (found != digest) {
    start.model.abort_weights();
    SCONCE_FAIL(kCorruptPackage, "its weights have the digest ", excerpt(digest), ", what came has ", found);
  }
  start.model.commit_weights(weight_version);
  start.model.release_previous();
}

std::optional<std::string> take_newest(const StartingModel& start, uint64_t newer_than) {
  const std::string token = http::read_token(start.config.weights_from_token_file);
  std::optional<http::ClientTls> tls;
  std::vector<Peer> peers;
  for (const std::string& text : split(start.config.weights_from, ',')) {
    const http::AdminServer named = http::parse_admin_server(text);
    if (named.tls && !tls)
      tls = http::checked_tls(start.config.weights_from_ca, start.config.weights_from_certificate,
                              start.config.weights_from_key);
    const std::string problem = problem_of([&] {
      for (http::AdminServer& server : http::every_address(named)) peers.push_back({std::move(server), 0, {}});
    });
    if (!problem.empty()) peers.push_back({named, 0, problem});
  }
  const auto client_of = [&](const http::AdminServer& server, std::chrono::seconds patience) {
    return http::AdminClient(server, token, patience, tls.value_or(http::ClientTls()));
  };
  {
    std::vector<std::future<void>> running;
    for (Peer& peer : peers) {
      if (!peer.problem.empty()) continue;
      running.push_back(std::async(std::launch::async, [&] {
        const std::string problem = problem_of([&] { ask(start, client_of(peer.server, kAskPatience), peer); });
        if (!problem.empty()) peer.problem = problem;
      }));
    }
    for (auto& one : running) one.get();
  }
  const auto pass_over = [&](const Peer& peer) {
    log_info("model {} version {}: no weights from {}: {}", start.name, start.version, peer.server.text,
             printable(peer.problem));
  };
  for (Peer& peer : peers) {
    if (peer.problem.empty() && peer.weight_version <= newer_than)
      peer.problem = "serves weight version " + std::to_string(peer.weight_version) + ", which is not newer";
    if (!peer.problem.empty()) pass_over(peer);
  }
  std::erase_if(peers, [](const Peer& peer) { return !peer.problem.empty(); });
  // Servers that start at the same time must not all ask the same peer.
  std::shuffle(peers.begin(), peers.end(), std::mt19937(std::random_device()()));
  std::stable_sort(peers.begin(), peers.end(),
                   [](const Peer& a, const Peer& b) { return a.weight_version > b.weight_version; });
  for (Peer& peer : peers) {
    SCONCE_CHECK(!start.ending, kUnavailable, "the server is ending");
    peer.problem = problem_of([&] { take(start, client_of(peer.server, kReadPatience), newer_than); });
    if (peer.problem.empty()) {
      log_info("model {} version {} serves the weights of {}: weight version {}", start.name, start.version,
               peer.server.text, start.model.weight_version());
      return peer.server.text;
    }
    pass_over(peer);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> take_peer_weights(const StartingModel& start, uint64_t newer_than) {
  std::optional<std::string> peer;
  const std::string problem = problem_of([&] { peer = take_newest(start, newer_than); });
  if (!problem.empty())
    log_warn("model {} version {}: no weights from {}: {}", start.name, start.version, start.config.weights_from,
             printable(problem));
  return peer;
}

const std::string& instance_name() {
  static const std::string name = random_hex(32);
  return name;
}

}  // namespace sconce::server::weights
