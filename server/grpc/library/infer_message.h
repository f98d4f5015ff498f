// The messages of inference: ModelInferRequest as a TensorRequest, a TensorAnswer as ModelInferResponse. Tensors' bytes
// stay in gRPC's slices, from which they are copied once, and leave from where the model put them.
#pragma once

#include <google/protobuf/arena.h>
#include <grpcpp/support/byte_buffer.h>
#include <inference.pb.h>

#include <memory>
#include <string>

#include "server/grpc/boundary.h"

namespace sconce::server {

// A message as it came. Reused is none: one for each request.
class InferMessage final : private RawTensors {
 public:
  InferMessage()
      : arena_(first_, sizeof first_),
        head_(google::protobuf::Arena::CreateMessage<inference::ModelInferRequest>(&arena_)) {}

  // The memory that read() will need besides the message, at most. Looks for tensors' bytes. False: it is no message.
  bool scan(grpc::ByteBuffer& message);
  size_t needs() const noexcept { return text_.size() * kPerByte; }
  bool read();
  const TensorRequest& request() const noexcept { return request_; }
  // Whether the client wants to be told which answer is the last one.
  bool wants_final() const noexcept { return wants_final_; }

 private:
  // A field of one byte may become a number of eight.
  static constexpr size_t kPerByte = 9;

  void copy(size_t index, std::byte* to) const noexcept override;
  using Parameters = google::protobuf::Map<std::string, inference::InferParameter>;
  std::span<const RequestParameter> parameters_of(const Parameters& from);

  grpc::ByteBuffer message_;
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

// The message without its compression. Null if it is damaged or has more than `most` bytes: then `status` says so.
bool inflate(grpc::ByteBuffer& message, grpc_compression_algorithm algorithm, size_t most, GrpcStatus& status);

}  // namespace sconce::server
