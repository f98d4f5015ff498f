// Parts of Open Inference Protocol v2 answers that all encodings share: which outputs can be sent, outputs in shared
// memory, and classes. Used by one thread at a time for a request, as Inference is.
#pragma once

#include <cstddef>
#include <span>

#include "server/codecs/classification.h"
#include "server/codecs/infer_codec.h"
#include "server/support/memory/request_memory.h"

namespace sconce::server::codecs {

// kUnsupported for an output that cannot be sent; kInternal for one that should have been copied from its device.
void check_infer_output(const Tensor& tensor, const InferRequest::Output& wanted);
// kInvalidArgument if the region is too small.
void send_to_region(const Tensor& tensor, const InferRequest::Output& wanted, TensorScratch& scratch);
// In the form of v2's BYTES: each element's length in 4 bytes, then its text. Lives in the scratch.
std::span<const std::byte> pack_classes(const Classes& classes, TensorScratch& scratch);

void append_number(TextBuffer& text, int64_t number);

}  // namespace sconce::server::codecs
