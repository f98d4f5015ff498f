// How large the body of an inference request can be that a model would take. Pure function.
#pragma once

#include <cstdint>

#include "server/signature/interface.h"

namespace sconce::server {

// The bytes of all inputs at their largest, as base64 or as JSON with room for whitespace and names; UINT64_MAX where
// an input's size is not bounded. Whatever has more is refused before it is read.
uint64_t most_body_bytes(const ModelInterface& model);

}  // namespace sconce::server
