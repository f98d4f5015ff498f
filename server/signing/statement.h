// What a signature says: the manifest of OpenSSF's model_signing, an in-toto statement of which names and digests a
// model's files have. For an archive these are its members, as if it were unpacked.
//
// Members alone do not fix a file: between them are headers and padding, and whoever reads them must have parsed the
// archive. So the statement also has the digest of the whole file, where verifiers of that format pass over it:
//
//   "predicate": {
//     "serialization": {"method": "files", "hash_type": "sha256", "allow_symlinks": false, "ignore_paths": []},
//     "resources": [{"name": "model/data/...", "algorithm": "sha256", "digest": HEX}, ...],
//     "sconce": {"bytes": N, "digest": HEX, "head_bytes": N, "head_digest": HEX}
//   }
//
// The head is that of a safetensors file: its length and its JSON. It can be compared before the rest has come.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sconce/weight_sources.h"

namespace sconce::server {

struct SignedResource {
  std::string name;
  Sha256Digest digest;
};

// The beginning of a file, or all of it.
struct SignedBytes {
  uint64_t bytes = 0;
  Sha256Digest digest{};
  friend bool operator==(const SignedBytes&, const SignedBytes&) = default;
};

struct Statement {
  std::string subject;
  std::vector<SignedResource> resources;
  std::optional<SignedBytes> file;  // absent: another program wrote the statement
  std::optional<SignedBytes> head;

  // The digest of the whole file; kForbidden if the statement is about several files and not about one.
  const Sha256Digest& file_digest() const;
};

// As JSON. Resources are put in the order of their names.
std::string statement_text(Statement statement);
// kForbidden with what is wrong: the kind of statement, names that come twice, a subject that is not the resources'.
Statement parse_statement(std::string_view json);

}  // namespace sconce::server
