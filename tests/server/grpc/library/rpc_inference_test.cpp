// RpcInference between a call of gRPC and a program that does what the test says.
#include "server/grpc/library/rpc_inference.h"

#include <doctest/doctest.h>
#include <grpcpp/support/slice.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/runner/counted_memory.h"

namespace sconce::server::rpc {
namespace {

// What the program was asked, in order: "admit, grow, run m, release".
class FakeInference final : public GrpcInference {
 public:
  bool admit(api::GrpcMethod, const GrpcCaller&, size_t, GrpcWaiter& waiter) noexcept override {
    waiter_ = &waiter;
    note("admit");
    if (admits) return true;
    finish({GrpcCode::kUnauthenticated, "no token"});
    return false;
  }
  bool grow(size_t) noexcept override {
    note("grow");
    if (grows) return true;
    finish({GrpcCode::kResourceExhausted, "no room"});
    return false;
  }
  void run(const codecs::TensorRequest& request) noexcept override { note("run " + std::string(request.model)); }
  void refuse(GrpcStatus status) noexcept override {
    note("refuse");
    finish(std::move(status));
  }
  void cancel() noexcept override { note("cancel"); }
  const GrpcStatus& status() const noexcept override { return status_; }
  const codecs::TensorAnswer& answer() const noexcept override { return answer_; }
  void next() noexcept override { note("next"); }
  void sending(size_t bytes) noexcept override {
    note("sending");
    sent = bytes;
  }
  void release() noexcept override { note("release"); }

  void finish(GrpcStatus status = {}, bool last = true) {
    status_ = std::move(status);
    answer_.last = last;
    answer_.model = "m";
    waiter_->finished();
  }
  void give_up() { waiter_->give_up(); }
  std::string seen() { return std::exchange(notes_, {}); }

  bool admits = true, grows = true;
  size_t sent = 0;

 private:
  void note(const std::string& text) { notes_ += (notes_.empty() ? "" : ", ") + text; }

  GrpcWaiter* waiter_ = nullptr;
  GrpcStatus status_;
  codecs::TensorAnswer answer_;
  std::string notes_;
};

class FakeHost final : public GrpcHost {
 public:
  std::shared_ptr<GrpcAnswering> answer(api::GrpcMethod, const GrpcCaller&, std::string_view, Done) noexcept override {
    return nullptr;
  }
  GrpcInference* inference() noexcept override { return has_memory ? &call : nullptr; }
  void lend(std::string_view, std::function<void()> work) noexcept override { lent.push_back(std::move(work)); }
  void count(api::GrpcMethod, GrpcCode) noexcept override {}
  void rest() noexcept override {}
  void log(bool, std::string_view) noexcept override {}

  bool has_memory = true;
  FakeInference call;
  std::vector<std::function<void()>> lent;
};

class CountingCanceller final : public CallCanceller {
 public:
  void cancel() noexcept override { ++cancelled; }
  int cancelled = 0;
};

struct CountedWaits final : WaitCounter {
  void waits(int change) noexcept override { now += change; }
  int now = 0;
};

struct Received {
  Received() {
    options.most_inflated = 1 << 20;
    make();
  }
  void make() {
    inference = std::make_shared<RpcInference>(
        host, options, waiting, api::GrpcMethod::kModelInfer, canceller, [this] { ++finished; }, [this] { ++handed; });
  }
  bool start(const std::string& bytes) {
    const grpc::Slice slice(bytes);
    grpc::ByteBuffer message(&slice, 1);
    return inference->start({}, message);
  }
  bool start() {
    inference::ModelInferRequest request;
    request.set_model_name("m");
    request.set_id("7");
    return start(request.SerializeAsString());
  }

  GrpcOptions options;
  FakeHost host;
  CountedWaits waiting;
  const std::shared_ptr<CountingCanceller> canceller = std::make_shared<CountingCanceller>();
  int finished = 0, handed = 0;
  std::shared_ptr<RpcInference> inference;
};

}  // namespace

TEST_CASE("rpc inference: a message is admitted, charged, read and run, and released at the end") {
  Received received;
  REQUIRE(received.start());
  CHECK(received.host.call.seen() == "admit, grow, run m");
  CHECK(received.handed == 1);
  CHECK(received.finished == 0);
  CHECK(received.waiting.now == 1);
  received.host.call.finish();
  CHECK(received.finished == 1);
  CHECK(received.waiting.now == 0);
  CHECK(received.inference->id() == "7");
  CHECK_FALSE(received.inference->more());
  grpc::ByteBuffer answer;
  REQUIRE(received.inference->respond(false, answer));
  CHECK(received.host.call.sent == answer.Length());
  CHECK(received.host.call.seen() == "sending");
  received.inference.reset();
  CHECK(received.host.call.seen() == "release");
}

TEST_CASE("rpc inference: without memory for the program's part it does not start") {
  Received received;
  received.host.has_memory = false;
  CHECK_FALSE(received.start());
  received.inference->cancel();
  received.inference.reset();
  CHECK(received.host.call.seen().empty());
  CHECK(received.finished == 0);
}

TEST_CASE("rpc inference: a refused message is not read") {
  Received received;
  SUBCASE("not admitted") {
    received.host.call.admits = false;
    REQUIRE(received.start());
    CHECK(received.host.call.seen() == "admit");
  }
  SUBCASE("no room for what it needs") {
    received.host.call.grows = false;
    REQUIRE(received.start());
    CHECK(received.host.call.seen() == "admit, grow");
  }
  SUBCASE("malformed") {
    REQUIRE(received.start("\xff\xff"));
    CHECK(received.host.call.seen() == "admit, refuse");
    CHECK(received.inference->status().code == GrpcCode::kInvalidArgument);
  }
  CHECK(received.finished == 1);
  CHECK(received.handed == 1);
  CHECK(received.waiting.now == 0);
  CHECK_FALSE(received.inference->more());
  received.inference.reset();
  CHECK(received.host.call.seen() == "release");
}

TEST_CASE("rpc inference: a long message is read on a thread for long work, which keeps it alive") {
  Received received;
  inference::ModelInferRequest request;
  request.set_model_name("m");
  request.add_raw_input_contents(std::string(8 << 20, 'x'));
  REQUIRE(received.start(request.SerializeAsString()));
  CHECK(received.host.call.seen() == "admit");
  CHECK(received.handed == 0);
  REQUIRE(received.host.lent.size() == 1);
  SUBCASE("read") {
    received.host.lent[0]();
    CHECK(received.host.call.seen() == "grow, run m");
    CHECK(received.handed == 1);
  }
  SUBCASE("cancelled before") {
    received.inference->cancel();
    CHECK(received.host.call.seen() == "cancel");
    received.inference.reset();
    CHECK(received.host.call.seen().empty());  // the thread still has it
    received.host.lent[0]();
    CHECK(received.handed == 1);
    received.host.lent.clear();
    CHECK(received.host.call.seen() == "grow, run m, release");  // the program ignores what it has cancelled
  }
}

TEST_CASE("rpc inference: without memory for a long message's thread it does not start, and is not admitted") {
  Received received;
  received.host.lent.reserve(1);
  inference::ModelInferRequest request;
  request.set_model_name("m");
  request.add_raw_input_contents(std::string(8 << 20, 'x'));
  const std::string bytes = request.SerializeAsString();
  const grpc::Slice slice(bytes);
  grpc::ByteBuffer message(&slice, 1);
  bool started = true;
  {
    const sconce::test::FailingMemory failing(1);
    started = received.inference->start({}, message);
    CHECK(failing.failed());
  }
  CHECK_FALSE(started);
  CHECK(received.waiting.now == 0);
  CHECK(received.finished == 0);
  CHECK(received.handed == 0);
  received.inference->cancel();
  received.inference.reset();
  CHECK(received.host.call.seen().empty());
}

TEST_CASE("rpc inference: a client that leaves before the program knows the call is not forgotten") {
  Received received;
  received.inference->cancel();
  CHECK(received.host.call.seen().empty());
  REQUIRE(received.start());
  CHECK(received.host.call.seen() == "admit, grow, run m, cancel");
}

TEST_CASE("rpc inference: a stream's next answer is asked for until the last one") {
  Received received;
  REQUIRE(received.start());
  received.host.call.finish({}, false);
  CHECK(received.inference->more());
  received.host.call.seen();
  received.inference->next();
  CHECK(received.host.call.seen() == "next");
  CHECK(received.waiting.now == 1);
  received.host.call.finish({}, true);
  CHECK_FALSE(received.inference->more());
  CHECK(received.finished == 2);
}

TEST_CASE("rpc inference: a client that reads too slowly has its call cancelled") {
  Received received;
  REQUIRE(received.start());
  received.host.call.finish();
  received.host.call.give_up();
  CHECK(received.canceller->cancelled == 1);
}

}  // namespace sconce::server::rpc
