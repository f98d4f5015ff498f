// Decodes a TensorRequest and encodes a TensorAnswer. Tensors of a request are copied once, into the scratch; tensors
// of an answer stay in the model's memory. Errors are kInvalidArgument and name the tensor.
#pragma once

#include <span>
#include <string_view>

#include "server/codecs/infer_codec.h"
#include "server/codecs/tensor_request.h"

namespace sconce::server::codecs {

void decode_tensors(const scheduling::ModelSignature& model, const TensorRequest& sent,
                    const SharedMemory* shared_memory, TensorScratch& scratch, InferRequest& request);

// Likewise, but inputs may be missing.
void decode_some_tensors(const scheduling::ModelSignature& model, const TensorRequest& sent,
                         const SharedMemory* shared_memory, TensorScratch& scratch, InferRequest& request);
// The value of a parameter. kInvalidArgument unless it is a non-negative integer.
uint64_t count_of(const RequestParameter& parameter);

// `outputs` and the scratch must live until the answer was sent.
void encode_tensors(const scheduling::ModelSignature& model, const InferRequest& request,
                    std::span<const Tensor> outputs, TensorScratch& scratch, TensorAnswer& answer);

}  // namespace sconce::server::codecs
