// The last rows of a tensor, for callers that run models. The public API is sconce/device_memory.h.
#pragma once

#include <string>

#include "sconce/device_memory.h"

namespace sconce {

// Why the tensor does not match `wanted`; empty if it does.
std::string why_no_last_rows(const Tensor& tensor, const LastRows& wanted);
bool has_last_rows(const Tensor& tensor, const LastRows& wanted) noexcept;

// The selected rows as a view, if `wanted` asks for the rows themselves; else undefined.
Tensor rows_as_they_are(const Tensor& tensor, const LastRows& wanted);

// Fetches the selected rows of a tensor that matches `wanted`. From a device, they arrive in pinned memory once the
// calling thread's stream for that device is done. `kept` must stay alive until then.
Tensor fetch_last_rows(const Tensor& tensor, const LastRows& wanted, Tensor& kept);

}  // namespace sconce
