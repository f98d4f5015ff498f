// A signature inside an archive: it is the comment at the archive's end, which readers of ZIP archives ignore.
//
//   original archive | length of the comment | bundle | "sconce-signature 00001234\n"
//   `-- signed, with a length of 0 --'                   the bundle's bytes, in eight digits
//
// No member moves, and the signature covers all bytes of the original archive. Pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "server/signing/statement.h"

namespace sconce::server::signing {

struct ArchiveSignature {
  std::string_view bundle;
  std::span<const std::byte> archive;  // the bytes before the comment's length
};

// Reads only the end of the file. nullopt: no signature.
std::optional<ArchiveSignature> find_archive_signature(std::span<const std::byte> file);
// The original archive, which ends with the length 0 of its comment.
SignedBytes signed_archive(std::span<const std::byte> archive);
// The bytes after the archive: the comment's length and the comment. kTooLarge: a comment has at most 65,535 bytes.
std::string archive_tail(std::string_view bundle);

}  // namespace sconce::server::signing
