// JSON of the call-spec endpoint, in the shape of the Python call: {"args": [...], "kwargs": {...}} in, the model's
// return value out.
//
// Containers follow the call spec: tuples, lists, deques and namedtuples are arrays; dicts and dataclasses are objects.
// A tensor is a nested list (complex numbers as [re, im]) or {"dtype", "shape", "base64"}; the signature gives dtypes.
// Leaves that the package dropped (numbers, strings, None) are accepted and ignored. Without a call spec, args is the
// flat list of inputs, and the answer is the output or a list of outputs. Used by one thread at a time for a request,
// as Inference is. Errors are kInvalidArgument and give the position in the call: args[0]["mask"].
#pragma once

#include <span>
#include <vector>

#include "server/http/response.h"
#include "server/scheduling/signature/model_signature.h"
#include "server/support/memory/request_memory.h"

namespace sconce::server::codecs {

// inputs: in the model's order and strides.
void decode_call(const scheduling::ModelSignature& model, const BodyBuffer& body, TensorScratch& scratch,
                 std::vector<Tensor>& inputs);

void encode_call(const scheduling::ModelSignature& model, std::span<const Tensor> outputs, bool base64,
                 TensorScratch& scratch, http::Response& response);

}  // namespace sconce::server::codecs
