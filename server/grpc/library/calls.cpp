#include "server/grpc/library/calls.h"

#include <grpcpp/impl/rpc_method.h>
#include <grpcpp/impl/rpc_service_method.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include <string>
#include <utility>

#include "server/grpc/library/infer_message.h"

namespace sconce::server {
namespace {

// How many calls of a kind wait. A client whose call finds none waits for a step of the others.
constexpr int kWaiting[Calls::kKinds] = {64, 16, 16};

// The compression of a message that gRPC left as it came.
class CompressionReader : public grpc::ProtoBufferReader {
 public:
  explicit CompressionReader(grpc::ByteBuffer& message) : ProtoBufferReader(&message) {}
  grpc_compression_algorithm algorithm() {
    return status().ok() && reader()->buffer_in->type == GRPC_BB_RAW ? reader()->buffer_in->data.raw.compression
                                                                     : GRPC_COMPRESS_NONE;
  }
};

}  // namespace

InferService::InferService() {
  using grpc::internal::RpcMethod;
  const auto add = [this](int index, const char* name, RpcMethod::RpcType type) {
    AddMethod(new grpc::internal::RpcServiceMethod(name, type, nullptr));
    MarkMethodRaw(index);
  };
  add(kInferIndex, "/inference.GRPCInferenceService/ModelInfer", RpcMethod::NORMAL_RPC);
  add(kStreamIndex, "/inference.GRPCInferenceService/ModelStreamInfer", RpcMethod::BIDI_STREAMING);
}

void Calls::open() {
  const MutexLock lock(mutex_);
  closed_ = false;
  for (size_t kind = 0; kind < kKinds; ++kind) {
    for (int i = 0; i < kWaiting[kind]; ++i) {
      if (!make(static_cast<Kind>(kind))) throw std::bad_alloc();
    }
  }
}

bool Calls::make(Kind kind) noexcept {
  constexpr void (*kMake[])(Calls&) = {wait_for_infer, wait_for_stream, wait_for_other};
  return has_memory([&] { kMake[kind](*this); });
}

void Calls::wait_for_next(Kind kind) noexcept {
  const MutexLock lock(mutex_);
  if (!closed_ && !make(kind)) ++missing_[kind];
}

void Calls::look() noexcept {
  const MutexLock lock(mutex_);
  for (size_t kind = 0; kind < kKinds; ++kind) {
    while (!closed_ && missing_[kind] > 0 && make(static_cast<Kind>(kind))) --missing_[kind];
  }
}

void Call::came(bool ok) {
  if (!ok) {
    // The server ends. gRPC owes no other event.
    holds_.store(1, std::memory_order_relaxed);
    return;
  }
  taken_ = true;
  calls_.wait_for_next(kind_);
  if (!has_memory([this] { begin(); })) finish(kNoMemory);
}

void Call::left(bool) {
  if (context().IsCancelled()) cancel();
}

void Call::let_go() noexcept {
  if (holds_.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
  if (taken_) over();
  delete this;
}

GrpcCaller caller_of(const grpc::ServerContext& context) {
  GrpcCaller caller;
  for (const auto& [name, value] : context.client_metadata()) {
    const std::string_view key(name.data(), name.size()), text(value.data(), value.size());
    // The first of a name counts.
    const auto take = [&](const char* of, std::string_view& to) {
      if (key == of && to.data() == nullptr) to = text;
    };
    take("authorization", caller.authorization);
    take("x-request-id", caller.request_id);
    take("traceparent", caller.traceparent);
    take("sconce-weights", caller.weights);
    take("sconce-affinity", caller.affinity);
  }
  const std::string peer = context.peer();  // "ipv4:192.0.2.7:50000", "ipv6:%5B::1%5D:50000"
  caller.peer = peer.substr(peer.find(':') + 1);
  for (const auto& [escaped, bracket] : {std::pair("%5B", "["), std::pair("%5D", "]")}) {
    if (const size_t at = caller.peer.find(escaped); at != std::string::npos) caller.peer.replace(at, 3, bracket);
  }
  const auto deadline = context.deadline();
  if (deadline != std::chrono::system_clock::time_point::max()) {
    const auto left = deadline - std::chrono::system_clock::now();
    caller.deadline = GrpcCaller::Clock::now() + std::chrono::duration_cast<GrpcCaller::Clock::duration>(left);
  }
  return caller;
}

grpc::Status status_of(const GrpcStatus& status) {
  return {static_cast<grpc::StatusCode>(status.code), status.message};
}

grpc_compression_algorithm compression_of(grpc::ByteBuffer& message) {
  return message.Valid() ? CompressionReader(message).algorithm() : GRPC_COMPRESS_NONE;
}

bool inflate_if_compressed(grpc::ByteBuffer& message, size_t most, GrpcStatus& status) {
  const grpc_compression_algorithm algorithm = compression_of(message);
  return algorithm == GRPC_COMPRESS_NONE || inflate(message, algorithm, most, status);
}

}  // namespace sconce::server
