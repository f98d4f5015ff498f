// RpcInference: one inference request as the library has it: its message, and the program's GrpcInference, which it
// releases at the end. It lives until its call and gRPC's sending of the answer release it.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "server/grpc/boundary.h"
#include "server/grpc/library/infer_message.h"

namespace sconce::server::rpc {

// Ends a call of gRPC, if the call still exists. Any thread.
class CallCanceller {
 public:
  virtual ~CallCanceller() = default;
  virtual void cancel() noexcept = 0;
};

// Counts the calls that wait for another thread.
class WaitCounter {
 public:
  virtual void waits(int change) noexcept = 0;  // a call starts (1) or stops (-1) waiting

 protected:
  ~WaitCounter() = default;
};

class RpcInference final : private GrpcWaiter, public std::enable_shared_from_this<RpcInference> {
 public:
  using Finished = std::function<void()>;  // the call has ended, or has its answer; must not throw

  // handed: called once the program has the request, or it has ended; may be null. Must not throw.
  RpcInference(GrpcHost& host, const GrpcOptions& options, WaitCounter& threads, api::GrpcMethod method,
               std::shared_ptr<CallCanceller> canceller, Finished finished, Finished handed = nullptr);
  ~RpcInference();

  // Calls Finished at the end. False: memory is too short even for a refusal, and neither function is called.
  bool start(const GrpcCaller& caller, grpc::ByteBuffer& message) noexcept;
  void cancel() noexcept;
  void next() noexcept;
  // Call this after Finished. Whether another answer follows this one.
  bool more() const noexcept { return status().code == GrpcCode::kOk && !answer().last; }
  const GrpcStatus& status() const noexcept { return call_.load()->status(); }
  const codecs::TensorAnswer& answer() const noexcept { return call_.load()->answer(); }
  const std::string& id() const noexcept { return id_; }
  // False: no memory.
  bool respond(bool streamed, grpc::ByteBuffer& to) noexcept;

 private:
  void finished() noexcept override;
  void give_up() noexcept override;
  void hand() noexcept;
  void read() noexcept;
  bool decode(GrpcInference& call);

  GrpcHost& host_;
  const GrpcOptions& options_;
  WaitCounter& threads_;
  const api::GrpcMethod method_;
  const std::shared_ptr<CallCanceller> canceller_;
  const Finished finished_, handed_;
  std::atomic<GrpcInference*> call_{nullptr};
  std::atomic<bool> cancelled_{false};
  grpc::ByteBuffer bytes_;
  InferMessage message_;
  std::string id_;
};

}  // namespace sconce::server::rpc
