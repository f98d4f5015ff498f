// RpcStream between a call of gRPC and a program that do what the test says.
#include "server/grpc/library/rpc_stream.h"

#include <doctest/doctest.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/slice.h>

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "tests/runner/counted_memory.h"

namespace sconce::server::rpc {

using sconce::test::FailingMemory;

namespace {

// A request at the program. Allocates nothing, so that memory fails only in the stream.
class FakeInference final : public GrpcInference {
 public:
  bool admit(api::GrpcMethod, const GrpcCaller&, size_t, GrpcWaiter& waiter) noexcept override {
    waiter_ = &waiter;
    return true;
  }
  bool grow(size_t) noexcept override { return true; }
  void run(const codecs::TensorRequest& request) noexcept override {
    answer_.id = request.id;
    runs = true;
  }
  void refuse(GrpcStatus status) noexcept override { finish(std::move(status)); }
  void cancel() noexcept override {
    ++cancelled;
    if (std::exchange(runs, false)) finish({GrpcCode::kCancelled, {}});
  }
  const GrpcStatus& status() const noexcept override { return status_; }
  const codecs::TensorAnswer& answer() const noexcept override { return answer_; }
  void next() noexcept override {
    ++asked;
    runs = true;
  }
  void sending(size_t) noexcept override {}
  void release() noexcept override { released = true; }

  void finish(GrpcStatus status = {}, bool last = true) {
    runs = false;
    status_ = std::move(status);
    answer_.last = last;
    answer_.model = "m";
    waiter_->finished();
  }

  bool runs = false, released = false;
  int cancelled = 0, asked = 0;

 private:
  GrpcWaiter* waiter_ = nullptr;
  GrpcStatus status_;
  codecs::TensorAnswer answer_;
};

class FakeHost final : public GrpcHost {
 public:
  std::shared_ptr<GrpcAnswering> answer(api::GrpcMethod, const GrpcCaller&, std::string_view, Done) noexcept override {
    return nullptr;
  }
  GrpcInference* inference() noexcept override { return has_memory ? &calls.at(taken++) : nullptr; }
  void lend(std::string_view, std::function<void()>) noexcept override {}
  void count(api::GrpcMethod, GrpcCode) noexcept override {}
  void rest() noexcept override {}
  void log(bool, std::string_view) noexcept override {}

  bool has_memory = true;
  std::array<FakeInference, 8> calls;
  size_t taken = 0;
};

struct NoWaits final : WaitCounter {
  void waits(int change) noexcept override { now += change; }
  int now = 0;
};

struct NoCanceller final : CallCanceller {
  void cancel() noexcept override {}
};

class Streaming final : private RpcStream::Wire {
 public:
  explicit Streaming(size_t window = 4, bool errors_end = false) {
    options_.most_inflated = 1 << 20;
    stream.emplace(static_cast<RpcStream::Wire&>(*this), window);
    stream->begin(errors_end);
  }
  // The client sends a request with this id.
  void send(const std::string& id = "7") {
    inference::ModelInferRequest request;
    request.set_model_name("m");
    request.set_id(id);
    const grpc::Slice slice(request.SerializeAsString());
    grpc::ByteBuffer message(&slice, 1);
    take_read().Swap(&message);
    stream->was_read(true);
  }
  // Where the read in progress puts its message.
  grpc::ByteBuffer& take_read() {
    REQUIRE(to_ != nullptr);
    return *std::exchange(to_, nullptr);
  }
  void end_requests() {
    take_read();
    stream->was_read(false);
  }
  // The answer that is being written: "7", or "7: its error". "": none. Then it was sent.
  std::string receive(bool ok = true) {
    if (!std::exchange(writes_, false)) return {};
    inference::ModelStreamInferResponse answer;
    grpc::ProtoBufferReader reader(&written_);
    REQUIRE(answer.ParseFromZeroCopyStream(&reader));
    stream->was_written(ok);
    const std::string& error = answer.error_message();
    return answer.infer_response().id() + (error.empty() ? "" : ": " + error);
  }
  bool reads() const { return to_ != nullptr; }
  FakeInference& call(size_t i) { return host.calls.at(i); }
  size_t released() const {
    size_t count = 0;
    for (const FakeInference& call : host.calls) count += call.released ? 1 : 0;
    return count;
  }

  FakeHost host;
  NoWaits waiting;
  int entered = 0, left = 0, most = 100;
  int finished = 0;
  grpc::Status status;
  std::optional<RpcStream> stream;

 private:
  bool enter() noexcept override { return ++entered - left <= most; }
  void leave() noexcept override { ++left; }
  GrpcCaller caller() override {
    GrpcCaller caller;
    caller.peer = "a peer whose name is longer than a string's own memory";
    return caller;
  }
  std::shared_ptr<RpcInference> make_inference(RpcInference::Finished finished,
                                               RpcInference::Finished handed) override {
    return std::make_shared<RpcInference>(host, options_, waiting, api::GrpcMethod::kModelStreamInfer, canceller_,
                                          std::move(finished), std::move(handed));
  }
  void read(grpc::ByteBuffer& to) noexcept override { to_ = &to; }
  void write(const grpc::ByteBuffer& message) noexcept override {
    written_ = message;
    writes_ = true;
  }
  void finish(const grpc::Status& with) noexcept override {
    ++finished;
    status = with;
  }

  GrpcOptions options_;
  const std::shared_ptr<NoCanceller> canceller_ = std::make_shared<NoCanceller>();
  grpc::ByteBuffer* to_ = nullptr;
  grpc::ByteBuffer written_;
  bool writes_ = false;
};

}  // namespace

TEST_CASE("rpc stream: answers are sent in the order of the requests, and the stream ends after the last one") {
  Streaming streaming;
  streaming.send("1");
  streaming.send("2");
  streaming.end_requests();
  streaming.call(1).finish();
  CHECK(streaming.receive().empty());
  streaming.call(0).finish();
  CHECK(streaming.finished == 0);
  CHECK(streaming.receive() == "1");
  CHECK(streaming.receive() == "2");
  CHECK(streaming.finished == 1);
  CHECK(streaming.status.ok());
  CHECK(streaming.released() == 2);
  CHECK(streaming.entered == streaming.left);
}

TEST_CASE("rpc stream: a request with several answers lets others pass, and stays until its last answer") {
  Streaming streaming;
  streaming.send("1");
  streaming.send("2");
  streaming.call(0).finish({}, false);
  CHECK(streaming.receive() == "1");
  CHECK(streaming.call(0).asked == 1);
  streaming.call(1).finish();
  CHECK(streaming.receive() == "2");
  streaming.call(0).finish({}, true);
  CHECK(streaming.receive() == "1");
  CHECK_FALSE(streaming.stream->works());
}

TEST_CASE("rpc stream: it reads no more requests than its window, and one at a time") {
  Streaming streaming(2);
  streaming.send("1");
  CHECK(streaming.reads());
  streaming.send("2");
  CHECK_FALSE(streaming.reads());
  streaming.call(0).finish();
  CHECK(streaming.receive() == "1");
  CHECK(streaming.reads());
}

TEST_CASE("rpc stream: a failed request is an answer, unless errors end the stream") {
  bool errors_end = false;
  SUBCASE("an answer") {}
  SUBCASE("the end") { errors_end = true; }
  Streaming streaming(4, errors_end);
  streaming.send("1");
  streaming.send("2");
  streaming.call(0).finish({GrpcCode::kNotFound, "there is no such model"});
  if (!errors_end) {
    CHECK(streaming.receive() == "1: there is no such model");
    CHECK(streaming.reads());
    return;
  }
  CHECK(streaming.receive().empty());
  CHECK(streaming.finished == 0);  // the second request still runs
  streaming.call(1).finish();
  CHECK(streaming.finished == 1);
  CHECK(streaming.status.error_code() == grpc::NOT_FOUND);
  CHECK(streaming.status.error_message() == "there is no such model");
}

TEST_CASE("rpc stream: a request beyond the limit of calls, or without memory at the program, is refused") {
  Streaming streaming;
  std::string expected = "no memory";
  SUBCASE("calls") {
    streaming.most = 0;
    expected = "too many calls are under way (setting grpc_calls): try again later";
  }
  SUBCASE("memory") { streaming.host.has_memory = false; }
  streaming.send();
  CHECK(streaming.receive() == ": " + expected);
  CHECK(streaming.reads());
  CHECK(streaming.host.taken == 0);
}

TEST_CASE(
    "rpc stream: when the client leaves, its requests are cancelled once, and the stream ends with the last one") {
  Streaming streaming;
  for (const char* id : {"1", "2", "3"}) streaming.send(id);
  streaming.call(1).runs = false;  // its run cannot be cancelled
  streaming.stream->cancel();
  CHECK(streaming.finished == 0);
  streaming.call(1).finish();
  CHECK(streaming.finished == 1);
  for (size_t i = 0; i < 3; ++i) CHECK(streaming.call(i).cancelled == 1);
  CHECK(streaming.receive().empty());
}

TEST_CASE("rpc stream: at a shutdown requests that have arrived are answered, and no more are read") {
  Streaming streaming;
  streaming.send("1");
  SUBCASE("with memory") {
    streaming.stream->drain();
    streaming.call(0).finish();
    CHECK(streaming.receive() == "1");
    CHECK(streaming.status.error_message().find("the server ends") != std::string::npos);
  }
  SUBCASE("without memory for the reason") {
    {
      const FailingMemory failing(1);
      streaming.stream->drain();
      CHECK(failing.failed());
    }
    streaming.call(0).finish();
    CHECK(streaming.receive() == "1");
    CHECK(streaming.status.error_message().empty());
  }
  CHECK(streaming.finished == 1);
  CHECK(streaming.status.error_code() == grpc::UNAVAILABLE);
}

TEST_CASE("rpc stream: without memory at any step of a request the stream or the request fails, and nothing else") {
  int64_t nth = 1, ended = 0;
  for (bool failed = true; failed; ++nth) {
    REQUIRE(nth < 200);
    Streaming streaming;
    streaming.send("1");
    inference::ModelInferRequest request;
    request.set_model_name("m");
    request.set_id("an id that is longer than a string's own memory");
    const grpc::Slice slice(request.SerializeAsString());
    grpc::ByteBuffer message(&slice, 1);
    streaming.take_read().Swap(&message);
    {
      const FailingMemory failing(nth);
      streaming.stream->was_read(true);
      failed = failing.failed();
    }
    CHECK(streaming.finished == 0);  // the first request still runs
    streaming.call(0).finish();
    if (streaming.finished == 0) {
      CHECK(streaming.receive() == "1");
      if (streaming.host.taken > 1 && streaming.call(1).runs) streaming.call(1).finish();
      CHECK_FALSE(streaming.receive().empty());
      CHECK_FALSE(streaming.stream->works());
    } else {
      ++ended;
      CHECK(failed);
      CHECK(streaming.finished == 1);
      CHECK(streaming.status.error_code() == grpc::RESOURCE_EXHAUSTED);
      CHECK(streaming.status.error_message() == "no memory");
      CHECK_FALSE(streaming.reads());
    }
    CHECK(streaming.waiting.now == 0);
    streaming.stream.reset();
    CHECK(streaming.released() == streaming.host.taken);
    CHECK(streaming.entered == streaming.left);
  }
  CHECK(ended > 3);  // the caller's name, the entry, the inference, the list
  CHECK(nth > 6);
}

TEST_CASE("rpc stream: without memory for an answer the stream ends") {
  bool errors_end = false;
  SUBCASE("the error of a request, as an answer") {}
  SUBCASE("the error of a request, as the stream's end") { errors_end = true; }
  Streaming streaming(4, errors_end);
  streaming.send("1");
  GrpcStatus status{GrpcCode::kNotFound, "a message that is longer than a string's own memory"};
  {
    const FailingMemory failing(1);
    streaming.call(0).finish(std::move(status));
    CHECK(failing.failed());
  }
  CHECK(streaming.receive().empty());
  CHECK(streaming.finished == 1);
  CHECK(streaming.status.error_code() == grpc::RESOURCE_EXHAUSTED);
}

TEST_CASE("rpc stream: the next answer and a client that leaves need no memory") {
  Streaming streaming;
  streaming.send("1");
  streaming.send("2");
  streaming.call(0).finish({}, false);
  const sconce::test::Counts before = sconce::test::counts();
  {
    const sconce::test::NoMemory none;
    streaming.stream->was_written(true);
    streaming.stream->cancel();
  }
  CHECK(sconce::test::counts().allocations == before.allocations);
  CHECK(streaming.finished == 1);
}

}  // namespace sconce::server::rpc
