// Triton's generate: a JSON object whose members are the inputs by name, and the outputs by name back. No shapes and no
// datatypes: what curl can send.
//
// An input is a scalar, a flat list or nested lists; what nesting does not tell of the shape comes from the metadata,
// the batch dimension is 1, and one variable dimension takes the number of elements. Other members, and those of
// "parameters", are parameters. Confined to the connection's thread. Errors are kInvalidArgument and name the input.
#pragma once

#include <span>

#include "server/protocols/infer_codec.h"

namespace sconce::server {

void decode_generate(const ModelInterface& model, const BodyBuffer& body, TensorScratch& scratch,
                     InferRequest& request);

// A scalar for an output of one element, else a flat list. stream: as the only event of a text/event-stream.
void encode_generate(const ModelInterface& model, const InferRequest& request, std::span<const Tensor> outputs,
                     bool stream, Response& response);

}  // namespace sconce::server
