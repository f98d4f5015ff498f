// The calls of one server, on gRPC's completion-queue interface. A call is an object that waits for a client, is
// answered in steps on CallThreads, and then deletes itself. As soon as a client takes it, another object of its kind
// starts to wait.
#pragma once

#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/impl/service_type.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/async_stream.h>
#include <grpcpp/support/async_unary_call.h>
#include <grpcpp/support/byte_buffer.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "sconce/mutex.h"
#include "server/grpc/boundary.h"
#include "server/grpc/library/call_threads.h"
#include "server/grpc/library/no_memory.h"
#include "server/grpc/library/status_text.h"

namespace sconce::server::rpc {

class RpcCall;
class Health;

// The inference methods. Their messages arrive as bytes, so that none is decompressed or parsed before it is admitted.
// All other methods use gRPC's generic service.
class InferService final : public grpc::Service {
 public:
  InferService();
  void request_infer(grpc::ServerContext& context, grpc::ByteBuffer& message,
                     grpc::ServerAsyncResponseWriter<grpc::ByteBuffer>& to, grpc::ServerCompletionQueue& queue,
                     void* tag) {
    RequestAsyncUnary(kInferIndex, &context, &message, &to, &queue, &queue, tag);
  }
  void request_stream(grpc::ServerContext& context,
                      grpc::ServerAsyncReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>& to,
                      grpc::ServerCompletionQueue& queue, void* tag) {
    RequestAsyncBidiStreaming(kStreamIndex, &context, &to, &queue, &queue, tag);
  }

 private:
  static constexpr int kInferIndex = 0, kStreamIndex = 1;
};

// Objects that the calls of one server share.
class Calls {
 public:
  enum Kind : size_t { kInfer, kStream, kOther, kKinds };

  Calls(GrpcHost& host, const GrpcOptions& options, Health& health, grpc::ServerCompletionQueue& queue)
      : host(host), options(options), health(health), queue(queue), threads(queue, host, options.busy_poll) {}

  GrpcHost& host;
  const GrpcOptions& options;
  Health& health;
  grpc::ServerCompletionQueue& queue;
  InferService service;
  grpc::AsyncGenericService others;
  CallThreads threads;

  // Call this once the server runs. Calls of all kinds start to wait.
  void open();
  // Makes another call of the kind wait. If memory is short now, look() retries.
  void wait_for_next(Kind kind) noexcept;
  void look() noexcept;  // call this a few times per second
  // Stops making calls. Call this before the server is shut down.
  void close() noexcept {
    const MutexLock lock(mutex_);
    closed_ = true;
  }
  // Whether there are no calls, waiting or taken.
  bool empty() const noexcept { return calls_.load(std::memory_order_acquire) == 0; }

  // Called when a client has made a call, or a stream has sent a request. Returns false if the limit is reached.
  // leave() follows in either case.
  bool enter() noexcept { return under_way_.fetch_add(1, std::memory_order_relaxed) < options.calls; }
  void leave() noexcept { under_way_.fetch_sub(1, std::memory_order_relaxed); }
  int64_t under_way() const noexcept { return under_way_.load(std::memory_order_relaxed); }
  // Visits the calls that clients have made.
  void visit(const std::function<void(RpcCall&)>& visit);

 private:
  friend class RpcCall;
  bool make(Kind kind) noexcept SCONCE_REQUIRES(mutex_);

  std::atomic<int64_t> under_way_{0};
  Mutex taken_mutex_;
  RpcCall* taken_ SCONCE_GUARDED_BY(taken_mutex_) = nullptr;  // linked list
  Mutex mutex_;
  bool closed_ SCONCE_GUARDED_BY(mutex_) = true;
  int missing_[kKinds] SCONCE_GUARDED_BY(mutex_) = {};  // calls that could not be made for lack of memory
  std::atomic<int64_t> calls_{0};
};

class RpcCall {
 public:
  RpcCall(const RpcCall&) = delete;

  // Only for a visited call. std::bad_alloc
  std::string peer();
  virtual bool works() noexcept = 0;  // whether the server is working for the client
  virtual void drain() noexcept {}    // shutdown: accept no more requests

 protected:
  // A step of the call as an event. It holds a reference to the call.
  template <class C, void (C::*Step)(bool)>
  class Event final : public CallEvent {
   public:
    explicit Event(C& call) noexcept : call_(call) {}
    void* tag() noexcept { return static_cast<CallEvent*>(this); }
    void happened(bool ok) noexcept override {
      (call_.*Step)(ok);
      call_.let_go();
    }

   private:
    C& call_;
  };

  // Derived classes pass the tags of `came_` and `left_` to gRPC.
  RpcCall(Calls& calls, Calls::Kind kind) noexcept : calls_(calls), came_(*this), left_(*this), kind_(kind) {
    calls.calls_.fetch_add(1, std::memory_order_relaxed);
  }
  virtual ~RpcCall() { calls_.calls_.fetch_sub(1, std::memory_order_release); }

  virtual grpc::ServerContext& context() noexcept = 0;
  virtual void begin() = 0;  // a client has made the call; std::bad_alloc before the call's last operation
  // The call's last operation. std::bad_alloc before it, unless the status's text is short.
  virtual void last(const grpc::Status& status) = 0;
  virtual void cancel() noexcept = 0;  // the client has disconnected, possibly while begin() runs on another thread
  virtual void over() noexcept {}      // called last

  // Ends the call with the status; without memory for its text, with RESOURCE_EXHAUSTED.
  void finish(const grpc::Status& status) noexcept;
  void finish(const GrpcStatus& status) noexcept;

  // Reference count; gRPC holds one reference for each pending event.
  void hold() noexcept { holds_.fetch_add(1, std::memory_order_relaxed); }
  void let_go() noexcept;

  Calls& calls_;

 private:
  friend class Calls;
  void came(bool ok);
  void left(bool ok);

 protected:
  Event<RpcCall, &RpcCall::came> came_;
  Event<RpcCall, &RpcCall::left> left_;

 private:
  const Calls::Kind kind_;
  bool taken_ = false;                             // by a client
  RpcCall *next_ = nullptr, *previous_ = nullptr;  // links of the list of taken calls
  std::atomic<int> holds_{3};                      // came_, left_, and the call's last operation
};

// A call's deadline; max: none, or more than ten years away.
GrpcCaller::Clock::time_point steady_time(gpr_timespec deadline) noexcept;
// The client's values in the call's metadata. std::bad_alloc
GrpcCaller caller_of(const grpc::ServerContext& context);

// Each makes a call that waits for a client.
void wait_for_infer(Calls& calls);
void wait_for_stream(Calls& calls);
void wait_for_other(Calls& calls);

}  // namespace sconce::server::rpc
