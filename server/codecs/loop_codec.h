// Requests to models with a decode loop (docs/generate.md), and their answers: a prompt of tokens with sampling
// parameters, answered by tokens. Errors are kInvalidArgument and name the input or parameter.
#pragma once

#include <span>
#include <string_view>

#include "server/codecs/infer_codec.h"
#include "server/codecs/tensor_request.h"
#include "server/scheduling/decoding/decode_loop.h"
#include "server/scheduling/decoding/loop_plan.h"

namespace sconce::server::codecs {

// Decodes the body of generate and generate_stream.
void decode_loop(const scheduling::ModelSignature& model, const scheduling::LoopPlan& plan, const BodyBuffer& body,
                 TensorScratch& scratch, InferRequest& request);
// Likewise for a message.
void decode_loop(const scheduling::ModelSignature& model, const scheduling::LoopPlan& plan, const TensorRequest& sent,
                 const SharedMemory* shared_memory, TensorScratch& scratch, InferRequest& request);

// The reason for clients: "stop", "length" or "deadline".
std::string_view finish_reason(scheduling::DecodeLoop::End end) noexcept;
// One answer in a stream of messages: a token and its number, or none.
void encode_token(const scheduling::ModelSignature& model, const InferRequest& request, std::span<const int64_t> token,
                  TensorAnswer& answer);
// The answer of generate.
void encode_tokens(const scheduling::ModelSignature& model, const InferRequest& request,
                   std::span<const int64_t> tokens, scheduling::DecodeLoop::End end, TextBuffer& text);
// Events of generate_stream: a token, the end, an error.
void append_token_event(const scheduling::ModelSignature& model, const InferRequest& request, int64_t token,
                        size_t step, TextBuffer& text);
void append_end_event(const scheduling::ModelSignature& model, const InferRequest& request, size_t tokens,
                      scheduling::DecodeLoop::End end, TextBuffer& text);
void append_error_event(std::string_view message, TextBuffer& text);

}  // namespace sconce::server::codecs
