// What the program and libsconce_grpc know of each other. The library has gRPC and protobuf, and translates; everything
// is decided in the program. Both are of one build. Includes std only, and calls nothing of the other side but through
// these interfaces, none of which throws.
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

namespace sconce::server {

// gRPC's status codes that the program gives.
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

// What a call says of itself. Views live as long as the call.
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

// What a connection has brought so far, as gRPC counts it.
struct GrpcTraffic {
  uint64_t streams = 0, succeeded = 0, failed = 0;  // that its client began; and of these, that ended
  uint64_t messages = 0;
};

// A call that waits for the program's answer.
class GrpcAnswering {
 public:
  virtual ~GrpcAnswering() = default;
  // The client has left: if the call still waits for its model, it ends. On any thread, at any time.
  virtual void cancel() noexcept = 0;
};

// The library's side of a call that asked for an inference: it waits for the answer.
class GrpcWaiter {
 public:
  // The inference has its status. Called once after admit(), run() or next(), on any thread, perhaps within them.
  virtual void finished() noexcept = 0;
  // The client takes too long to read the answer: end the call. After sending() only; never within
  // another call.
  virtual void give_up() noexcept = 0;

 protected:
  ~GrpcWaiter() = default;
};

// One inference; the program implements it. First admit(); if that returns true, run(); next() while the answer is not
// the last; release() at the end.
class GrpcInference {
 public:
  // bytes: the message's size. Returns false if the call is refused; status() says why.
  virtual bool admit(GrpcMethod method, const GrpcCaller& caller, size_t bytes, GrpcWaiter& waiter) noexcept = 0;
  // The message has grown to `bytes`. Returns false as admit() does.
  virtual bool grow(size_t bytes) noexcept = 0;
  // `request` and what it views live until release().
  virtual void run(const TensorRequest& request) noexcept = 0;
  // Instead of run(), for bytes that are no message.
  virtual void refuse(GrpcStatus status) noexcept = 0;
  // The client has left. On any thread between admit() and release().
  virtual void cancel() noexcept = 0;
  // After finished().
  virtual const GrpcStatus& status() const noexcept = 0;
  virtual const TensorAnswer& answer() const noexcept = 0;  // if that is kOk
  // Makes the next answer, once this one, which is not the last, was sent. Ends in finished() again.
  virtual void next() noexcept = 0;
  // The answer has `bytes`: from here on its client must take it in time.
  virtual void sending(size_t bytes) noexcept = 0;
  // Nobody views the answer any more, and the waiter may go.
  virtual void release() noexcept = 0;

 protected:
  ~GrpcInference() = default;
};

class GrpcHost {
 public:
  // Answers any method but an inference. request: the message as JSON. done: is called once, on any thread, perhaps
  // within the call; `text` is the answer's message as JSON. Returns null if there is nothing to cancel.
  using Done = std::function<void(const GrpcStatus& status, std::string_view text)>;
  virtual std::shared_ptr<GrpcAnswering> answer(GrpcMethod method, const GrpcCaller& caller, std::string_view request,
                                                Done done) noexcept = 0;
  // Null: there is no memory.
  virtual GrpcInference* inference() noexcept = 0;
  // Calls the work on a thread for long work, or here if there is none. peer: whose it is, as in GrpcCaller; clients
  // take turns at these threads.
  virtual void lend(std::string_view peer, std::function<void()> work) noexcept = 0;
  // Counts a call that ended without an inference or an answer of the program.
  virtual void count(GrpcMethod method, GrpcCode code) noexcept = 0;
  // The calling thread has nothing to do for now: it gives memory that it keeps back to the system.
  virtual void rest() noexcept = 0;
  virtual void log(bool is_error, std::string_view text) noexcept = 0;

 protected:
  ~GrpcHost() = default;
};

struct GrpcOptions {
  uint64_t most_message = 0, most_inflated = 0;  // bytes
  uint64_t most_text = 0;                        // bytes of a message that asks for no inference
  uint64_t most_header = 0, memory = 0;          // bytes; memory: for what is not yet a message
  int64_t streams = 0;                           // calls of a connection
  int64_t calls = 0;                             // of all, with the requests of streams
  int64_t stream_window = 0;                     // requests of one ModelStreamInfer under way
  std::chrono::milliseconds handshake{}, idle{};
  std::chrono::milliseconds age{}, age_grace{};  // 0: any
  std::chrono::nanoseconds busy_poll{};          // the setting
  int64_t compress_above = 0;                    // bytes; 0: never
  bool tls = false, mutual = false;
  std::string certificate, key, client_ca;  // files in PEM, read again when they change
};

class GrpcServer {
 public:
  virtual ~GrpcServer() = default;
  // Takes the connected socket.
  virtual void serve(int descriptor) noexcept = 0;
  // For grpc.health.v1.
  virtual void set_ready(bool ready) noexcept = 0;
  // Call it a few times each second: makes up for what there was no memory for.
  virtual void look() noexcept = 0;
  // Takes no more calls and no more requests of streams; waits for those under way until then, and cancels the rest.
  virtual void stop(std::chrono::steady_clock::time_point deadline) noexcept = 0;

  // For the guard of connections; see connection_guard.h.

  // Calls back for each connection whose number is larger than `after`, in order. peer: as in GrpcCaller.
  virtual void connections(int64_t after, const std::function<void(int64_t number, std::string_view peer)>& found) = 0;
  // False: the connection is gone.
  virtual bool traffic(int64_t number, GrpcTraffic& to) noexcept = 0;
  // Calls back for each call that a client has made. works: something is done for it. Nothing of the server may be
  // called meanwhile. std::bad_alloc
  virtual void visit_calls(const std::function<void(const std::string& peer, bool works)>& visit) = 0;
  virtual uint64_t calls() const noexcept = 0;
};

// The library's only function. Null: `problem` says why.
using OpenGrpcServer = GrpcServer*(GrpcHost& host, const GrpcOptions& options, std::string& problem);
#define SCONCE_GRPC_OPEN sconce_grpc_open_3
#define SCONCE_GRPC_OPEN_NAME "sconce_grpc_open_3"

}  // namespace sconce::server
