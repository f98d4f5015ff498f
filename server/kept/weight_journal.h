// The journal of a model's kept sets: which files have them, and what they are. A small file of JSON that is replaced
// as a whole; the one before it stays beside it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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
  std::string time;    // when it was published, "2026-01-31T12:00:00.000Z"
  PublishedBy by;
};

// Newest first: the one to serve, and the one to go back to if that is damaged.
std::string journal_text(std::span<const KeptSet> sets);
// Says what is wrong with the text, which is called `where`: kCorruptPackage, kInvalidArgument.
std::vector<KeptSet> parse_journal(std::string_view text, const std::string& where);

}  // namespace sconce::server
