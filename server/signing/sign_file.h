// Signs files. A package is verified first, so that a damaged one is never signed.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>

#include "server/signing/keys.h"
#include "server/signing/statement.h"

namespace sconce::server::signing {

// The statement for a file: a package (.pt2) has its members as resources, any other file has one resource. A signature
// inside a package is excluded. kIo, kInvalidArgument (a directory), errors of Package.
Statement describe_file(const std::filesystem::path& file);
// Writes the signature to another file. kIo.
void sign_beside(const std::filesystem::path& file, const Key& key, const std::filesystem::path& signature);
// Rewrites the package with the signature inside, replacing an earlier one. kIo, kTooLarge, kInvalidArgument if it is
// not an archive or has another comment.
void sign_inside(const std::filesystem::path& file, const Key& key);

struct SignedStream {
  Sha256Digest digest;  // of all bytes
  std::string bundle;
};
// Signs bytes that are read in pieces, with the first key in key_file. name: of the bytes, for the statement. next:
// fills a block and returns the number of bytes, 0 at the end. Errors of read_keys().
SignedStream sign_stream(const std::string& name, const std::function<size_t(std::span<std::byte>)>& next,
                         const std::string& key_file);

}  // namespace sconce::server::signing
