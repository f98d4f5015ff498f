// The messages of inference: ModelInferRequest as a TensorRequest, a TensorAnswer as ModelInferResponse. Tensors' bytes
// stay in gRPC's slices, from which they are copied once, and leave from where the model put them.
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

namespace sconce::server {

// A message as it came. Reused is none: one for each request.
class InferMessage final : private RawTensors {
 public:
  InferMessage()
      : arena_(first_, sizeof first_),
        head_(google::protobuf::Arena::CreateMessage<inference::ModelInferRequest>(&arena_)) {}

  // Counts what read() will need, and allocates nothing. False: it is no message, or asks for too much: see problem().
  bool scan(grpc::ByteBuffer& message);
  // Bytes that read() takes besides the message, at most.
  size_t needs() const noexcept { return cost_.bytes; }
  bool read();
  std::string problem() const;
  const TensorRequest& request() const noexcept { return request_; }
  // Whether the client wants to be told which answer is the last one.
  bool wants_final() const noexcept { return wants_final_; }

 private:
  bool split();
  void copy(size_t index, std::byte* to) const noexcept override;
  using Parameters = google::protobuf::Map<std::string, inference::InferParameter>;
  std::span<const RequestParameter> parameters_of(const Parameters& from);

  grpc::ByteBuffer message_;
  MessageCost cost_;
  std::vector<int> raw_at_;      // offsets in the message
  std::string text_;             // the message without those
  alignas(8) char first_[1024];  // of the arena: most messages need no more
  google::protobuf::Arena arena_;
  inference::ModelInferRequest* head_;
  std::vector<std::vector<RequestParameter>> parameters_;
  TensorRequest request_;
  bool wants_final_ = false;
};

// `owner` is kept until gRPC has sent all bytes. final: adds the parameter that says that no other answer follows.
// streamed: as ModelStreamInferResponse.
grpc::ByteBuffer infer_response(const TensorAnswer& answer, const std::shared_ptr<const void>& owner, bool final,
                                bool streamed);
// ModelStreamInferResponse for a request that failed.
grpc::ByteBuffer stream_error(const std::string& id, const std::string& message);

enum class Inflated : int8_t { kDone, kRefused, kNoRoom };
// Takes the message's compression off. `room` is asked for all bytes that this has taken, before it takes them; if it
// says no, the result is kNoRoom. kRefused: the message is damaged or has more than `most` bytes: `status` says so.
Inflated inflate(grpc::ByteBuffer& message, grpc_compression_algorithm algorithm, size_t most,
                 const std::function<bool(size_t)>& room, GrpcStatus& status);

}  // namespace sconce::server
