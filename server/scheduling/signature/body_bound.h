// Bounds the body of an inference request that a model could take. Pure function.
#pragma once

#include <cstdint>

#include "server/scheduling/signature/model_signature.h"

namespace sconce::server {

// The bytes of all inputs at their largest, as base64 or as JSON with whitespace and names; UINT64_MAX if an input's
// size is unbounded. Larger bodies are refused before they are read.
uint64_t most_body_bytes(const ModelSignature& model);

}  // namespace sconce::server
