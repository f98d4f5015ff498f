// Triton's generate: the request is a JSON object with inputs by name, the answer an object with outputs by name.
// Neither has shapes or datatypes, so that curl suffices.
//
// An input is a scalar, a flat list or nested lists. Metadata supply the part of the shape that nesting does not give:
// the batch dimension is 1, and one variable dimension takes the number of elements. All other members, and those of
// "parameters", are parameters. Used by one thread at a time for a request, as Inference is. Errors are
// kInvalidArgument and name the input.
#pragma once

#include <span>

#include "server/codecs/infer_codec.h"
#include "server/support/json_cursor.h"

namespace sconce::server::codecs {

void decode_generate(const scheduling::ModelSignature& model, const BodyBuffer& body, TensorScratch& scratch,
                     InferRequest& request);

// Reads the value at the cursor as input `index`. one_row: the first dimension is 1, whatever the model's is.
void read_generate_input(const scheduling::ModelSignature& model, JsonCursor& json, size_t index,
                         TensorScratch& scratch, InferRequest& request, bool one_row = false);

// Writes a scalar for an output of one element, else a flat list. stream: writes a text/event-stream with one event.
void encode_generate(const scheduling::ModelSignature& model, const InferRequest& request,
                     std::span<const Tensor> outputs, bool stream, http::Response& response);

// Calls member(key, top_level) for each member of a request and of its "parameters"; top_level: the member is in the
// request itself.
template <class Member>
void read_generate_members(const scheduling::ModelSignature& model, JsonCursor& json, const Member& member) {
  json.object("the request", [&](std::string_view key) {
    if (key == "parameters" && !model.input_names.find(key)) {
      json.object("'parameters'", [&](std::string_view name) { member(name, false); });
    } else {
      member(key, true);
    }
  });
  json.finish();
}

}  // namespace sconce::server::codecs
