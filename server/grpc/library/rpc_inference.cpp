#include "server/grpc/library/rpc_inference.h"

#include <functional>
#include <utility>

#include "server/grpc/library/no_memory.h"
#include "server/grpc/library/status_text.h"

namespace sconce::server::rpc {
namespace {

using grpc::ByteBuffer;

// Larger messages are parsed on a thread for long work: about a millisecond of parsing.
constexpr size_t kLongMessage = 8 * 1024 * 1024;
constexpr size_t kLongCompressed = 1024;

bool is_long(ByteBuffer& message) {
  return message.Length() > kLongMessage ||
         (message.Length() > kLongCompressed && compression_of(message) != GRPC_COMPRESS_NONE);
}

}  // namespace

RpcInference::RpcInference(GrpcHost& host, const GrpcOptions& options, WaitCounter& threads, api::GrpcMethod method,
                           std::shared_ptr<CallCanceller> canceller, Finished finished, Finished handed)
    : host_(host),
      options_(options),
      threads_(threads),
      method_(method),
      canceller_(std::move(canceller)),
      finished_(std::move(finished)),
      handed_(std::move(handed)) {}

RpcInference::~RpcInference() {
  if (GrpcInference* const call = call_) call->release();
}

bool RpcInference::start(const GrpcCaller& caller, ByteBuffer& message) noexcept {
  // Everything that may throw precedes the admission: later, the program holds the call.
  size_t bytes = 0;
  std::function<void()> reading;  // of a long message
  if (!has_memory([&] {
        bytes = held_bytes(message);
        if (is_long(message))
          reading = [self = shared_from_this()] {
            self->read();
            self->hand();
          };
      }))
    return false;
  const auto self = shared_from_this();
  GrpcInference* const call = host_.inference();
  if (call == nullptr) return false;
  call_ = call;
  bytes_.Swap(&message);
  threads_.waits(1);
  const bool admitted = call->admit(method_, caller, bytes, *this);
  if (admitted && reading) {
    host_.lend(caller.peer, std::move(reading));
  } else {
    if (admitted) read();
    hand();
  }
  // The client may have left before the program knew the call.
  if (cancelled_) call->cancel();
  return true;
}

void RpcInference::cancel() noexcept {
  cancelled_ = true;
  if (GrpcInference* const call = call_) call->cancel();
}

void RpcInference::next() noexcept {
  threads_.waits(1);
  call_.load()->next();
}

bool RpcInference::respond(bool streamed, ByteBuffer& to) noexcept {
  if (!has_memory([&] {
        ByteBuffer response = infer_response(answer(), shared_from_this(), message_.wants_final(), streamed);
        to.Swap(&response);
      }))
    return false;
  call_.load()->sending(to.Length());
  return true;
}

void RpcInference::finished() noexcept {
  threads_.waits(-1);
  finished_();
}

void RpcInference::give_up() noexcept { canceller_->cancel(); }

void RpcInference::hand() noexcept {
  if (handed_) handed_();
}

void RpcInference::read() noexcept {
  GrpcInference& call = *call_;
  bool runs = false;
  const GrpcCode problem = outcome_of([&] { runs = decode(call); });
  if (problem != GrpcCode::kOk) return call.refuse(own_status_after(problem));
  if (runs) call.run(message_.request());
}

// Returns false if the call has its status.
bool RpcInference::decode(GrpcInference& call) {
  if (const grpc_compression_algorithm algorithm = compression_of(bytes_); algorithm != GRPC_COMPRESS_NONE) {
    const size_t compressed = held_bytes(bytes_);
    GrpcStatus status;
    const Inflated inflated = inflate(
        bytes_, algorithm, options_.most_inflated, [&](size_t bytes) { return call.grow(compressed + bytes); }, status);
    if (inflated == Inflated::kRefused) call.refuse(std::move(status));
    if (inflated != Inflated::kDone) return false;
  }
  const auto refuse = [&] {
    call.refuse({GrpcCode::kInvalidArgument, message_.problem()});
    return false;
  };
  const size_t bytes = held_bytes(bytes_);
  if (!message_.scan(bytes_)) return refuse();
  if (!call.grow(bytes + message_.needs())) return false;
  if (!message_.read()) return refuse();
  id_ = message_.request().id;
  return true;
}

}  // namespace sconce::server::rpc
