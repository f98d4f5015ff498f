// The journal of a model's stored sets: their files and descriptions, the guard of the served set, and the outcomes of
// the last pushes. It is a small JSON file that is replaced as a whole; the previous journal is kept beside it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/weights/store/guard_bounds.h"

namespace sconce::server::weights {

// The publisher of a set.
struct PublishedBy {
  std::string peer, request;  // a client's address and its request's id; or "weights_from" and the server's name
};

struct StoredSet {
  uint64_t weight_version = 0;
  std::string label;
  std::string digest;  // "sha-256:HEX", as Model::weights_digest()
  std::string file;    // name in the model's folder
  uint64_t bytes = 0;  // of the file
  std::string sha256;  // of the file, in hexadecimal; empty: journals are not sealed
  std::string time;    // time of publication, "2026-01-31T12:00:00.000Z"
  PublishedBy by;
};

// A guard of the newest set that continues after a restart.
struct StoredGuard {
  GuardBounds bounds;
  std::chrono::microseconds left{};  // remaining part of its window when the journal was written
  std::string push;                  // id of the push that published the set; empty: no push
  std::string instance;  // the guarding process (instance_name()); empty: the last process shut down normally
  uint64_t ended = 0;    // number of processes that crashed during the guard
};

// The outcome of a push with an id.
struct StoredPush {
  std::string id, state;        // "committed" and others: push_state_name()
  std::string label;            // of its set
  std::string set;              // the named set that the push filled; empty: the model's own weights
  uint64_t weight_version = 0;  // the weight version after commit or undo; 0: none
  bool stored = false;          // the set of that weight version is stored
  std::vector<std::string> members;
  uint64_t member = 0;
};

struct Journal {
  static constexpr size_t kMaxPushes = 64;

  std::vector<StoredSet> sets;  // newest first: the set to serve, and the set to roll back to if the first is damaged
  std::optional<StoredGuard> guard;  // of the first set
  std::vector<StoredPush> pushes;    // oldest first

  // Replaces the record of the same push, or appends the push; the oldest records beyond kMaxPushes are removed.
  void note(StoredPush push);
};

// The push as a note of the named set that it fills.
std::string push_text(const StoredPush& push);
// nullopt for a malformed note, or for one of a later release.
std::optional<StoredPush> parse_push(std::string_view text);

std::string journal_text(const Journal& journal);
// Errors call the text `where`: kCorruptPackage, kInvalidArgument.
Journal parse_journal(std::string_view text, const std::string& where);

}  // namespace sconce::server::weights
