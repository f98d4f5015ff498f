// Signs files. A package is checked before, so that nobody vouches for one that is damaged.
#pragma once

#include <filesystem>
#include <string>

#include "server/signing/keys.h"
#include "server/signing/statement.h"

namespace sconce::server {

// What is to be signed of a file: for a package (.pt2) with its members as resources, else with one resource. The
// package counts as it is without a signature inside. kIo, kInvalidArgument (a directory), the errors of Package.
Statement describe_file(const std::filesystem::path& file);
// Writes the signature to another file. kIo.
void sign_beside(const std::filesystem::path& file, const Key& key, const std::filesystem::path& signature);
// Writes the package anew, with the signature inside; one that was there goes. kIo, kTooLarge, kInvalidArgument if it
// is no archive or has another comment.
void sign_inside(const std::filesystem::path& file, const Key& key);

}  // namespace sconce::server
