// The messages of inference: ModelInferRequest as a TensorRequest, and a TensorAnswer as ModelInferResponse. Bytes of
// request tensors stay in gRPC's slices, from which they are copied once; answers are sent from the model's memory.
#pragma once

#include <google/protobuf/arena.h>
#include <grpcpp/support/byte_buffer.h>
#include <inference.pb.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server/grpc/boundary.h"
#include "server/grpc/library/message_cost.h"

namespace sconce::server::rpc {

// A received message. One object per request; not reused.
class InferMessage final : private codecs::RawTensors {
 public:
  InferMessage()
      : arena_(first_, sizeof first_),
        head_(google::protobuf::Arena::CreateMessage<inference::ModelInferRequest>(&arena_)) {}

  // Determines the memory that read() will need, without allocating. False: malformed, or beyond a limit: see
  // problem().
  bool scan(grpc::ByteBuffer& message);
  // Maximum bytes that read() allocates in addition to the message.
  size_t needs() const noexcept { return cost_.bytes; }
  bool read();
  std::string problem() const;
  const codecs::TensorRequest& request() const noexcept { return request_; }
  // Whether the client asked for a mark on the last answer.
  bool wants_final() const noexcept { return wants_final_; }

 private:
  bool split();
  void copy(size_t index, std::byte* to) const noexcept override;
  using Parameters = google::protobuf::Map<std::string, inference::InferParameter>;
  std::span<const codecs::RequestParameter> parameters_of(const Parameters& from);

  grpc::ByteBuffer message_;
  MessageCost cost_;
  std::vector<int> raw_at_;      // offsets in the message
  std::string text_;             // the message without those tensors
  alignas(8) char first_[1024];  // of the arena; enough for most messages
  google::protobuf::Arena arena_;
  inference::ModelInferRequest* head_;
  std::vector<std::vector<codecs::RequestParameter>> parameters_;
  codecs::TensorRequest request_;
  bool wants_final_ = false;
};

grpc_compression_algorithm compression_of(grpc::ByteBuffer& message);
// Bytes of the message and of gRPC's list of its slices; a client may send many small ones.
size_t held_bytes(grpc::ByteBuffer& message);

// owner: kept until gRPC has sent all bytes. final: adds the parameter that marks the last answer. streamed: as
// ModelStreamInferResponse.
grpc::ByteBuffer infer_response(const codecs::TensorAnswer& answer, const std::shared_ptr<const void>& owner,
                                bool final, bool streamed);
// ModelStreamInferResponse for a failed request.
grpc::ByteBuffer stream_error(const std::string& id, const std::string& message);

enum class Inflated : int8_t { kDone, kRefused, kNoRoom };
// Decompresses the message. `room` is called with the total bytes before they are allocated; if it returns false, the
// result is kNoRoom. kRefused: the message is corrupt or larger than `most` bytes; `status` has the reason.
Inflated inflate(grpc::ByteBuffer& message, grpc_compression_algorithm algorithm, size_t most,
                 const std::function<bool(size_t)>& room, GrpcStatus& status);

}  // namespace sconce::server::rpc
