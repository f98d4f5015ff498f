// The interface between the program and libsconce_grpc. The library has gRPC and protobuf, and translates; the program
// makes all decisions. Both are from the same build. Includes only std headers and two of the server's, which do
// likewise; each side calls the other only through these interfaces, none of which throws.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "server/api/methods.h"
#include "server/codecs/tensor_request.h"

namespace sconce::server::rpc {

// The gRPC status codes that the program uses.
enum class GrpcCode : uint8_t {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kUnauthenticated = 16,
};

// A call's metadata. Views live as long as the call.
struct GrpcCaller {
  using Clock = std::chrono::steady_clock;
  std::string_view authorization, request_id, traceparent, weights, affinity;  // metadata; empty: not sent
  std::string peer;                                                            // "192.0.2.7:50000"
  Clock::time_point deadline = Clock::time_point::max();
};

struct GrpcStatus {
  GrpcCode code = GrpcCode::kOk;
  std::string message;
};

// gRPC's counters of a connection.
struct GrpcTraffic {
  uint64_t streams = 0, succeeded = 0, failed = 0;  // started by the client; and of these, ended
  uint64_t messages = 0;
};

// A call that waits for the program's answer.
class GrpcAnswering {
 public:
  virtual ~GrpcAnswering() = default;
  // The client has disconnected: if the call still waits for its model, it ends. On any thread, at any time.
  virtual void cancel() noexcept = 0;
};

// The library's side of an inference call: it waits for the answer.
class GrpcWaiter {
 public:
  // The inference has its status. Called once after admit(), run() or next(), on any thread, possibly within them.
  virtual void finished() noexcept = 0;
  // The client reads the answer too slowly: end the call. Only after sending(); never within another call.
  virtual void give_up() noexcept = 0;

 protected:
  ~GrpcWaiter() = default;
};

// One inference; the program implements it. Call admit(); if it returns true, run(); next() while the answer is not the
// last; release() at the end.
class GrpcInference {
 public:
  // bytes: the message's size. Returns false if the call is refused; status() has the reason.
  virtual bool admit(api::GrpcMethod method, const GrpcCaller& caller, size_t bytes, GrpcWaiter& waiter) noexcept = 0;
  // The message has grown to `bytes`. Returns false like admit().
  virtual bool grow(size_t bytes) noexcept = 0;
  // `request` and its views live until release().
  virtual void run(const codecs::TensorRequest& request) noexcept = 0;
  // Instead of run(), for a malformed message.
  virtual void refuse(GrpcStatus status) noexcept = 0;
  // The client has disconnected. On any thread between admit() and release().
  virtual void cancel() noexcept = 0;
  // After finished().
  virtual const GrpcStatus& status() const noexcept = 0;
  virtual const codecs::TensorAnswer& answer() const noexcept = 0;  // if status() is kOk
  // Makes the next answer, after the previous one was sent and was not the last. Ends with finished() again.
  virtual void next() noexcept = 0;
  // The answer has `bytes` bytes: from now on the client must read it in time.
  virtual void sending(size_t bytes) noexcept = 0;
  // The answer is no longer viewed, and the waiter may be destroyed.
  virtual void release() noexcept = 0;

 protected:
  ~GrpcInference() = default;
};

class GrpcHost {
 public:
  // Answers any method except inference. request: the message as JSON. done: called once, on any thread, possibly
  // within the call; `text` is the answer's message as JSON. Returns null if there is nothing to cancel.
  using Done = std::function<void(const GrpcStatus& status, std::string_view text)>;
  virtual std::shared_ptr<GrpcAnswering> answer(api::GrpcMethod method, const GrpcCaller& caller,
                                                std::string_view request, Done done) noexcept = 0;
  // Null: no memory.
  virtual GrpcInference* inference() noexcept = 0;
  // Calls `work` on a thread for long work, or on this thread if there is none. peer: the client, as in GrpcCaller;
  // clients are served round-robin.
  virtual void lend(std::string_view peer, std::function<void()> work) noexcept = 0;
  // Counts a call that ended without an inference and without an answer of the program.
  virtual void count(api::GrpcMethod method, GrpcCode code) noexcept = 0;
  // The calling thread is idle: it returns cached memory to the system.
  virtual void rest() noexcept = 0;
  virtual void log(bool is_error, std::string_view text) noexcept = 0;

 protected:
  ~GrpcHost() = default;
};

struct GrpcOptions {
  uint64_t most_message = 0, most_inflated = 0;  // bytes
  uint64_t most_text = 0;                        // bytes of a message other than inference
  uint64_t most_header = 0, memory = 0;          // bytes; memory: for data that is not yet a message
  int64_t streams = 0;                           // calls per connection
  int64_t calls = 0;                             // in all, including the requests of streams
  int64_t stream_window = 0;                     // requests of one ModelStreamInfer in progress
  std::chrono::milliseconds handshake{}, idle{};
  std::chrono::milliseconds age{}, age_grace{};  // 0: unlimited
  std::chrono::nanoseconds busy_poll{};          // setting busy_poll
  int64_t compress_above = 0;                    // bytes; 0: never
  bool tls = false, mutual = false;
  std::string certificate, key, client_ca;  // PEM files, read again when they change
};

class GrpcServer {
 public:
  virtual ~GrpcServer() = default;
  // Takes ownership of the connected socket.
  virtual void serve(int descriptor) noexcept = 0;
  // For grpc.health.v1.
  virtual void set_ready(bool ready) noexcept = 0;
  // Call this a few times per second: retries allocations that failed.
  virtual void look() noexcept = 0;
  // Accepts no more calls and no more requests of streams; waits for those in progress until `deadline`, and cancels
  // the rest.
  virtual void stop(std::chrono::steady_clock::time_point deadline) noexcept = 0;

  // For ConnectionGuard; see connection_guard.h.

  // Calls `found` for each connection with a number larger than `after`, in order. peer: as in GrpcCaller.
  virtual void connections(int64_t after, const std::function<void(int64_t number, std::string_view peer)>& found) = 0;
  // False: the connection is closed.
  virtual bool traffic(int64_t number, GrpcTraffic& to) noexcept = 0;
  // Calls `visit` for each call that a client has made. works: the server is working for it. `visit` must not call the
  // server. std::bad_alloc
  virtual void visit_calls(const std::function<void(const std::string& peer, bool works)>& visit) = 0;
  virtual uint64_t calls() const noexcept = 0;
};

// The library's only function. Null: `problem` has the reason.
using OpenGrpcServer = GrpcServer*(GrpcHost& host, const GrpcOptions& options, std::string& problem);
#define SCONCE_GRPC_OPEN sconce_grpc_open_3
#define SCONCE_GRPC_OPEN_NAME "sconce_grpc_open_3"

}  // namespace sconce::server::rpc
