// The SHA-256 of a file.
#pragma once

#include <string>

#include "sconce/weight_sources.h"

namespace sconce::server::registry {

// Of the whole file. kIo; kUnavailable without OpenSSL's libcrypto.
Sha256Digest digest_of_file(int file, const std::string& path);

}  // namespace sconce::server::registry
