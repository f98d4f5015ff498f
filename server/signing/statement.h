// The signed statement: the manifest of OpenSSF's model_signing, an in-toto statement with the names and digests of a
// model's files. For an archive the files are its members, as if it were unpacked.
//
// Digests of members alone do not cover a file: headers and padding lie between them, and a reader has to parse the
// archive first. The statement therefore also has the digest of the whole file, in a member that verifiers of that
// format ignore:
//
//   "predicate": {
//     "serialization": {"method": "files", "hash_type": "sha256", "allow_symlinks": false, "ignore_paths": []},
//     "resources": [{"name": "model/data/...", "algorithm": "sha256", "digest": HEX}, ...],
//     "sconce": {"bytes": N, "digest": HEX, "head_bytes": N, "head_digest": HEX}
//   }
//
// The head is that of a safetensors file: its length and its JSON. It can be verified before the rest has arrived.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sconce/weight_sources.h"

namespace sconce::server::signing {

struct SignedResource {
  std::string name;
  Sha256Digest digest;
};

// The first `bytes` bytes of a file, or the whole file.
struct SignedBytes {
  uint64_t bytes = 0;
  Sha256Digest digest{};
  friend bool operator==(const SignedBytes&, const SignedBytes&) = default;
};

struct Statement {
  std::string subject;
  std::vector<SignedResource> resources;
  std::optional<SignedBytes> file;  // absent: written by another program
  std::optional<SignedBytes> head;

  // The digest of the whole file; kForbidden if the statement is about several files.
  const Sha256Digest& file_digest() const;
};

// As JSON. Resources are sorted by name.
std::string statement_text(Statement statement);
// kForbidden with the defect: the kind of statement, duplicate names, a subject that does not match the resources.
Statement parse_statement(std::string_view json);

}  // namespace sconce::server::signing
