// `sconce weights golden`: records live answers of a server as golden requests (docs/validation.md).
#pragma once

#include <cstdint>
#include <string>

#include "server/http/client/admin_client.h"

namespace sconce::server::cli {

struct GoldenOptions {
  std::string model, version, out;
  uint64_t requests = 100;
  uint64_t longest_s = 0;  // time limit after which the recorded answers are taken; 0: none
};

// Returns 0 when the file is written, 1 if the server refuses or fails.
int record_golden(const http::AdminClient& server, const GoldenOptions& options);

}  // namespace sconce::server::cli
