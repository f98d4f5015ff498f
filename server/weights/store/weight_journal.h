// The journal of a model's kept sets: which files have them, what they are, whether the served one is watched, and what
// became of the last pushes. A small file of JSON that is replaced as a whole; the one before it stays beside it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/weights/store/guard_bounds.h"

namespace sconce::server {

// Who published a set.
struct PublishedBy {
  std::string peer, request;  // a client's address and the id of its request; or "weights_from" and the server's name
};

struct KeptSet {
  uint64_t generation = 0;
  std::string label;
  std::string digest;  // "sha-256:HEX", as Model::weights_digest()
  std::string file;    // in the model's folder
  uint64_t bytes = 0;  // of the file
  std::string sha256;  // of the file, in hexadecimal; empty: journals are not sealed
  std::string time;    // when it was published, "2026-01-31T12:00:00.000Z"
  PublishedBy by;
};

// A watch over the newest set that a restart goes on with.
struct KeptGuard {
  GuardBounds bounds;
  std::chrono::microseconds left{};  // of its window, when this was written
  std::string push;                  // the id of the push that published the set; empty: none did
  std::string instance;              // the process that watches (instance_name()); empty: the last one ended in order
  uint64_t ended = 0;                // processes that ended during the watch, and not in order
};

// What became of a push of weights that had an id.
struct KeptPush {
  std::string id, state;    // "committed", as push_state_name()
  std::string label;        // of its set
  std::string set;          // the named set that it filled; empty: the model's own weights
  uint64_t generation = 0;  // which it got when it was committed or undone; 0: none
  bool kept = false;        // the set of that generation was kept
  std::vector<std::string> members;
  uint64_t member = 0;
};

struct Journal {
  static constexpr size_t kMaxPushes = 64;

  std::vector<KeptSet> sets;       // newest first: the one to serve, and the one to go back to if that is damaged
  std::optional<KeptGuard> guard;  // over the first of them
  std::vector<KeptPush> pushes;    // oldest first

  // Puts it in the place of what was known of the push, or behind the others; the oldest ones beyond kMaxPushes go.
  void note(KeptPush push);
};

// A push as the note of the named set that it fills.
std::string push_text(const KeptPush& push);
// nullopt for a note that is none, or of a later release.
std::optional<KeptPush> parse_push(std::string_view text);

std::string journal_text(const Journal& journal);
// Says what is wrong with the text, which is called `where`: kCorruptPackage, kInvalidArgument.
Journal parse_journal(std::string_view text, const std::string& where);

}  // namespace sconce::server
