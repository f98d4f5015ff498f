// The size limit of an inference request's body, from the model's inputs. Pure function.
#pragma once

#include <cstdint>

#include "server/scheduling/signature/model_signature.h"

namespace sconce::server::scheduling {

// The bytes of all inputs at their largest, as base64 or as JSON with whitespace and names; UINT64_MAX if the size of
// an input is unbounded. Larger bodies are refused before they are read.
uint64_t most_body_bytes(const ModelSignature& model);

}  // namespace sconce::server::scheduling
