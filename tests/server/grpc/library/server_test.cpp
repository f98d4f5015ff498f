// libsconce_grpc's server between a client of gRPC and a program that does what the test says: memory runs out where
// the library's code has an event of gRPC, out of which nothing may throw. The process lives, and the call ends.
#include <doctest/doctest.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/slice.h>
#include <inference.pb.h>
#include <sys/socket.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "server/grpc/boundary.h"
#include "tests/runner/counted_memory.h"

extern "C" sconce::server::rpc::OpenGrpcServer SCONCE_GRPC_OPEN;

namespace sconce::server::rpc {

using sconce::test::FailingMemory;

namespace {

// No text of this length fits into a string's own memory.
const std::string kLong = "a message that is longer than a string's own memory";

// From now on, the calling thread's next allocation fails.
void fail_next() {
  static thread_local std::optional<FailingMemory> failing;
  failing.emplace(1);
}

class FakeInference final : public GrpcInference {
 public:
  bool admit(api::GrpcMethod, const GrpcCaller&, size_t, GrpcWaiter& waiter) noexcept override {
    waiter_ = &waiter;
    return true;
  }
  bool grow(size_t) noexcept override { return true; }
  void run(const codecs::TensorRequest&) noexcept override {
    if (fails) fail_next();
    waiter_->finished();
  }
  void refuse(GrpcStatus) noexcept override { waiter_->finished(); }
  void cancel() noexcept override {}
  const GrpcStatus& status() const noexcept override { return given; }
  const codecs::TensorAnswer& answer() const noexcept override { return answer_; }
  void next() noexcept override {}
  void sending(size_t) noexcept override {}
  void release() noexcept override {}

  bool fails = false;
  GrpcStatus given;

 private:
  GrpcWaiter* waiter_ = nullptr;
  codecs::TensorAnswer answer_;
};

class FakeHost final : public GrpcHost {
 public:
  std::shared_ptr<GrpcAnswering> answer(api::GrpcMethod, const GrpcCaller&, std::string_view,
                                        Done done) noexcept override {
    if (fails) fail_next();
    done(given, "{}");
    return nullptr;
  }
  GrpcInference* inference() noexcept override { return &call; }
  void lend(std::string_view, std::function<void()> work) noexcept override { work(); }
  void count(api::GrpcMethod, GrpcCode) noexcept override {
    if (fails) fail_next();
  }
  void rest() noexcept override {}
  void log(bool, std::string_view) noexcept override {}

  bool fails = false;
  GrpcStatus given;
  FakeInference call;
};

class Served {
 public:
  explicit Served(int64_t calls = 100) {
    GrpcOptions options;
    options.most_message = options.most_inflated = options.most_text = options.most_header = 1 << 20;
    options.memory = 64 << 20;
    options.streams = 100;
    options.calls = calls;
    options.stream_window = 4;
    options.handshake = options.idle = std::chrono::minutes(10);
    std::string problem;
    server.reset(SCONCE_GRPC_OPEN(host, options, problem));
    REQUIRE_MESSAGE(server, problem);
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    server->serve(ends[1]);
    channel = grpc::CreateInsecureChannelFromFd("test", ends[0]);
  }
  // The end of a call with one message.
  grpc::Status ask(const std::string& method, const google::protobuf::Message& message) {
    const grpc::Slice slice(message.SerializeAsString());
    const grpc::ByteBuffer request(&slice, 1);
    grpc::ByteBuffer response;
    grpc::ClientContext context;
    grpc::CompletionQueue queue;
    grpc::GenericStub stub(channel);
    const auto call = stub.PrepareUnaryCall(&context, method, request, &queue);
    grpc::Status status;
    call->StartCall();
    call->Finish(&response, &status, nullptr);
    wait(queue);
    return status;
  }
  static bool wait(grpc::CompletionQueue& queue) {
    void* tag = nullptr;
    bool ok = false;
    REQUIRE(queue.Next(&tag, &ok));
    return ok;
  }

  FakeHost host;
  std::unique_ptr<GrpcServer> server;
  std::shared_ptr<grpc::Channel> channel;
};

inference::ModelInferRequest infer_request() {
  inference::ModelInferRequest request;
  request.set_model_name("m");
  return request;
}

const std::string kService = "/inference.GRPCInferenceService/";

}  // namespace

TEST_CASE("grpc server: without memory for an answer or its error the call ends, and the next one is answered") {
  Served served;
  served.host.call.fails = true;
  SUBCASE("an error") { served.host.call.given = {GrpcCode::kNotFound, kLong}; }
  SUBCASE("an answer") {}
  const grpc::Status status = served.ask(kService + "ModelInfer", infer_request());
  CHECK(status.error_code() == grpc::RESOURCE_EXHAUSTED);
  CHECK(status.error_message() == "no memory");
  served.host.call.fails = false;
  CHECK(served.ask(kService + "ModelInfer", infer_request()).error_code() ==
        static_cast<grpc::StatusCode>(served.host.call.given.code));
}

TEST_CASE("grpc server: without memory for a refusal the call ends") {
  Served served(0);
  CHECK(served.ask(kService + "ModelInfer", infer_request()).error_code() == grpc::UNAVAILABLE);
  served.host.fails = true;
  CHECK(served.ask(kService + "ModelInfer", infer_request()).error_code() == grpc::RESOURCE_EXHAUSTED);
}

TEST_CASE("grpc server: without memory for the error of a document the call ends") {
  Served served;
  served.host.given = {GrpcCode::kNotFound, kLong};
  const grpc::Status status = served.ask(kService + "ServerLive", inference::ServerLiveRequest());
  CHECK(status.error_message() == kLong);
  served.host.fails = true;
  CHECK(served.ask(kService + "ServerLive", inference::ServerLiveRequest()).error_code() == grpc::RESOURCE_EXHAUSTED);
}

TEST_CASE("grpc server: without memory to refuse a call without a message the call ends") {
  Served served;
  const auto ask = [&] {
    grpc::ClientContext context;
    grpc::CompletionQueue queue;
    grpc::GenericStub stub(served.channel);
    const auto call = stub.PrepareCall(&context, kService + "ServerLive", &queue);
    call->StartCall(nullptr);
    Served::wait(queue);
    call->WritesDone(nullptr);
    Served::wait(queue);
    grpc::Status status;
    call->Finish(&status, nullptr);
    Served::wait(queue);
    return status.error_code();
  };
  CHECK(ask() == grpc::INTERNAL);
  served.host.fails = true;
  CHECK(ask() == grpc::RESOURCE_EXHAUSTED);
}

}  // namespace sconce::server::rpc
