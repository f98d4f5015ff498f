// A signature inside an archive: it is the comment at the archive's end, which readers of ZIP archives pass over.
//
//   archive as it was | length of the comment | bundle | "sconce-signature 00001234\n"
//   `---- signed, with a length of 0 ----'               the bundle's bytes, in eight digits
//
// So no member moves, and what is signed are all bytes of the archive as it was. Pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "server/signing/statement.h"

namespace sconce::server {

struct ArchiveSignature {
  std::string_view bundle;
  std::span<const std::byte> archive;  // what comes before the comment's length
};

// Looks at the end of the file alone. nullopt: there is no signature.
std::optional<ArchiveSignature> find_archive_signature(std::span<const std::byte> file);
// The archive as it was, which ends with the length 0 of its comment.
SignedBytes signed_archive(std::span<const std::byte> archive);
// What comes behind the archive: the comment's length and the comment. kTooLarge: a comment has 65,535 bytes at most.
std::string archive_tail(std::string_view bundle);

}  // namespace sconce::server
