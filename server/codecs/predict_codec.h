// :predict of KServe's v1 protocol and of TensorFlow Serving.
//
// Row format: {"instances": [...]}, each a value or, for several inputs, an object by name; the answer is
// {"predictions": [...]} in the same form. Column format: {"inputs": VALUE or {NAME: VALUE}}; the answer is {"outputs":
// ...}. Values are nested lists with the signature's dtypes. Used by one thread at a time for a request, as Inference
// is. Errors are kInvalidArgument and name the input.
#pragma once

#include <span>

#include "server/codecs/infer_codec.h"

namespace sconce::server::codecs {

// Sets request.columns.
void decode_predict(const scheduling::ModelSignature& model, const BodyBuffer& body, TensorScratch& scratch,
                    InferRequest& request);
void encode_predict(const scheduling::ModelSignature& model, const InferRequest& request,
                    std::span<const Tensor> outputs, http::Response& response);

}  // namespace sconce::server::codecs
