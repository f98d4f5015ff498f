// The last rows of a tensor, for those who run models. The public side is sconce/device_memory.h.
#pragma once

#include <string>

#include "sconce/device_memory.h"

namespace sconce {

// Why the tensor has not what is wanted; empty if it has.
std::string why_no_last_rows(const Tensor& tensor, const LastRows& wanted);
bool has_last_rows(const Tensor& tensor, const LastRows& wanted) noexcept;

// The rows of a tensor that has what is wanted, as a view, if they are wanted as they are; else undefined.
Tensor rows_as_they_are(const Tensor& tensor, const LastRows& wanted);

// What is wanted of a tensor that has it. Of a device's tensor it arrives in pinned memory when the calling thread's
// stream for that device is done. `kept` is kept until then.
Tensor fetch_last_rows(const Tensor& tensor, const LastRows& wanted, Tensor& kept);

}  // namespace sconce
