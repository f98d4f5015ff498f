#include "server/grpc/library/calls.h"

#include <grpcpp/impl/rpc_method.h>
#include <grpcpp/impl/rpc_service_method.h>

#include <string>
#include <utility>

#include "server/grpc/library/channelz.h"

namespace sconce::server::rpc {
namespace {

// Number of waiting calls of each kind. If none is waiting, a client's call waits for a step of another one.
constexpr int kWaiting[Calls::kKinds] = {64, 16, 16};

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

void Calls::visit(const std::function<void(RpcCall&)>& visit) {
  const MutexLock lock(taken_mutex_);
  for (RpcCall* call = taken_; call != nullptr; call = call->next_) visit(*call);
}

std::string RpcCall::peer() { return peer_of(context().peer()); }

void RpcCall::came(bool ok) {
  if (!ok) {
    // The server shuts down. gRPC sends no other event.
    holds_.store(1, std::memory_order_relaxed);
    return;
  }
  taken_ = true;
  {
    const MutexLock lock(calls_.taken_mutex_);
    next_ = calls_.taken_;
    if (next_ != nullptr) next_->previous_ = this;
    calls_.taken_ = this;
  }
  calls_.wait_for_next(kind_);
  if (!calls_.enter()) {
    if (kind_ == Calls::kInfer) calls_.host.count(api::GrpcMethod::kModelInfer, kTooManyCalls.code);
    return finish(kTooManyCalls);
  }
  const GrpcCode problem = outcome_of([this] { begin(); });
  if (problem != GrpcCode::kOk) finish(status_after(problem));
}

void RpcCall::finish(const grpc::Status& status) noexcept {
  const GrpcCode problem = outcome_of([&] { last(status); });
  if (problem != GrpcCode::kOk) last(status_after(problem));
}

void RpcCall::finish(const GrpcStatus& status) noexcept {
  const GrpcCode problem = outcome_of([&] { last(status_of(status)); });
  if (problem != GrpcCode::kOk) last(status_after(problem));
}

void RpcCall::left(bool) {
  if (context().IsCancelled()) cancel();
}

void RpcCall::let_go() noexcept {
  if (holds_.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
  if (taken_) {
    {
      const MutexLock lock(calls_.taken_mutex_);
      (previous_ != nullptr ? previous_->next_ : calls_.taken_) = next_;
      if (next_ != nullptr) next_->previous_ = previous_;
    }
    calls_.leave();
    over();
  }
  delete this;
}

GrpcCaller::Clock::time_point steady_time(gpr_timespec deadline) noexcept {
  using Clock = GrpcCaller::Clock;
  // In seconds, because nanoseconds cover only 292 years, and a client may send more.
  constexpr int64_t kTenYears = int64_t{10} * 365 * 24 * 3600;
  const gpr_timespec left = gpr_time_sub(deadline, gpr_now(deadline.clock_type));
  if (gpr_time_cmp(deadline, gpr_inf_future(deadline.clock_type)) == 0 || left.tv_sec > kTenYears)
    return Clock::time_point::max();
  if (left.tv_sec < 0) return Clock::time_point{};
  return Clock::now() + std::chrono::seconds(left.tv_sec) + std::chrono::nanoseconds(left.tv_nsec);
}

GrpcCaller caller_of(const grpc::ServerContext& context) {
  GrpcCaller caller;
  for (const auto& [name, value] : context.client_metadata()) {
    const std::string_view key(name.data(), name.size()), text(value.data(), value.size());
    // The first field of a name counts.
    const auto take = [&](const char* of, std::string_view& to) {
      if (key == of && to.data() == nullptr) to = text;
    };
    take("authorization", caller.authorization);
    take("x-request-id", caller.request_id);
    take("traceparent", caller.traceparent);
    take("sconce-weights", caller.weights);
    take("sconce-affinity", caller.affinity);
  }
  caller.peer = peer_of(context.peer());
  caller.deadline = steady_time(context.raw_deadline());
  return caller;
}

}  // namespace sconce::server::rpc
