// Decodes a TensorRequest and encodes a TensorAnswer. Tensors of a request are copied once, into the scratch; those of
// an answer are where the model put them. Errors are kInvalidArgument and name the tensor.
#pragma once

#include <span>
#include <string_view>

#include "server/codecs/infer_codec.h"
#include "server/codecs/tensor_request.h"

namespace sconce::server {

void decode_tensors(const ModelSignature& model, const TensorRequest& sent, const SharedMemory* shared_memory,
                    TensorScratch& scratch, InferRequest& request);

// The same, and inputs may be missing.
void decode_some_tensors(const ModelSignature& model, const TensorRequest& sent, const SharedMemory* shared_memory,
                         TensorScratch& scratch, InferRequest& request);
// A parameter's value. kInvalidArgument unless it is an integer that is not negative.
uint64_t count_of(const RequestParameter& parameter);

// `outputs` and the scratch must live until the answer was sent.
void encode_tensors(const ModelSignature& model, const InferRequest& request, std::span<const Tensor> outputs,
                    TensorScratch& scratch, TensorAnswer& answer);

}  // namespace sconce::server
