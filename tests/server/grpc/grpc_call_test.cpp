// GrpcCall, with a waiter that stands for libsconce_grpc.
#include "server/grpc/grpc_call.h"

#include <doctest/doctest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/files.h"
#include "tests/runner/counted_memory.h"
#include "tests/server/grpc/grpc_service.h"
#include "tests/server/tensor_requests.h"

namespace sconce::server::rpc {

using namespace std::chrono_literals;
using test::FakeRequest;
using test::GrpcService;
using test::LoopRequestOf;
using test::ScriptedService;

namespace {

constexpr auto kInfer = api::GrpcMethod::kModelInfer, kStream = api::GrpcMethod::kModelStreamInfer;

class Waiter final : public GrpcWaiter {
 public:
  void finished() noexcept override {
    const std::lock_guard lock(mutex_);
    ++finished_;
    changed_.notify_all();
  }
  void give_up() noexcept override { ++given_up; }
  // Until the call has finished, and not twice.
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return finished_ > 0; });
    CHECK(finished_ == 1);
    finished_ = 0;
  }
  bool has_finished() {
    const std::lock_guard lock(mutex_);
    return finished_ > 0;
  }
  int given_up = 0;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int finished_ = 0;
};

// A call from admission to release.
class Calling {
 public:
  explicit Calling(GrpcService& server) : call_(server.room.take()) {}
  ~Calling() { release(); }
  Calling(const Calling&) = delete;

  bool admit(api::GrpcMethod method = kInfer, ScriptedService::Clock::time_point deadline = TimerQueue::kNever,
             std::string_view authorization = {}) {
    GrpcCaller caller;
    caller.peer = "192.0.2.7:50000";
    caller.request_id = "an-id";
    caller.deadline = deadline;
    caller.authorization = authorization;
    return call_->admit(method, caller, 1000, waiter);
  }
  void run(const codecs::TensorRequest& request, api::GrpcMethod method = kInfer,
           ScriptedService::Clock::time_point deadline = TimerQueue::kNever) {
    REQUIRE(admit(method, deadline));
    call_->run(request);
  }
  GrpcCode code() {
    waiter.wait();
    return call_->status().code;
  }
  const std::string& message() const { return call_->status().message; }
  void release() {
    if (GrpcCall* const call = std::exchange(call_, nullptr)) call->release();
  }
  GrpcCall* operator->() const { return call_; }

  Waiter waiter;

 private:
  GrpcCall* call_;
};

void limit_time(ServerConfig& config) { config.set_model("*.request_timeout=15s", "the test"); }

}  // namespace

TEST_CASE("grpc call: it is answered by the model, counted and written to the access log") {
  GrpcService server([](ServerConfig& config) { config.access_log = true; });
  server.publish("m");
  const FakeRequest fake;
  {
    Calling call(server);
    call.run(fake.request);
    CHECK(call.code() == GrpcCode::kOk);
    const codecs::TensorAnswer& answer = call->answer();
    CHECK(answer.model == "m");
    CHECK(answer.weights_name == "1");
    CHECK(answer.last);
    CHECK_FALSE(answer.streamed);
    REQUIRE(answer.outputs.size() == 1);
    CHECK(static_cast<const float*>(answer.outputs[0].data)[1] == 2 * 2 + 10);
    CHECK(server.counted(kInfer, GrpcCode::kOk) == 0);
    call->sending(77);
  }
  CHECK(server.counted(kInfer, GrpcCode::kOk) == 1);
  CHECK(server.model("m")->statistics().totals().success == 1);
  const std::vector<std::string> lines = ScriptedService::log_lines("gRPC ModelInfer");
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].find("\"status\":0,\"bytes\":77") != std::string::npos);
  CHECK(lines[0].find("an-id") != std::string::npos);
}

TEST_CASE("grpc call: its object serves the next call") {
  GrpcService server;
  server.publish("m");
  const FakeRequest fake;
  const GrpcCall* first = nullptr;
  for (int i = 0; i < 3; ++i) {
    Calling call(server);
    if (first == nullptr) first = call.operator->();
    CHECK(call.operator->() == first);
    call.run(fake.request);
    CHECK(call.code() == GrpcCode::kOk);
  }
  CHECK(server.counted(kInfer, GrpcCode::kOk) == 3);
  CHECK(server.request_memory.used() == 0);
}

TEST_CASE("grpc call: a message that grows beyond the memory for requests is refused, and its memory is free again") {
  GrpcService server;
  {
    Calling call(server);
    REQUIRE(call.admit());
    CHECK(server.request_memory.used() == 1000);
    CHECK(call->grow(5000));
    CHECK(server.request_memory.used() == 5000);
    CHECK_FALSE(call->grow(65 << 20));
    CHECK(call.code() == GrpcCode::kResourceExhausted);
    CHECK_FALSE(call->grow(1));
    CHECK_FALSE(call.waiter.has_finished());
  }
  CHECK(server.request_memory.used() == 0);
}

TEST_CASE("grpc call: it waits for a model that is loaded on demand") {
  GrpcService server(limit_time);
  const FakeRequest fake;
  Calling call(server);
  call.run(fake.request);
  server.wait_for_load();
  CHECK_FALSE(call.waiter.has_finished());
  SUBCASE("and runs when it is loaded") {
    server.end_load();
    CHECK(call.code() == GrpcCode::kOk);
  }
  SUBCASE("again if it was evicted meanwhile") {
    server.evicts = true;
    server.end_load();
    server.wait_for_load(2);
    server.evicts = false;
    server.end_load();
    CHECK(call.code() == GrpcCode::kOk);
  }
  SUBCASE("and fails with the load") {
    server.end_load("the test says no");
    CHECK(call.code() == GrpcCode::kInternal);
    CHECK(call.message() == "the test says no");
    CHECK(ScriptedService::log_lines("request failed with 500: the test says no").size() == 1);
  }
  SUBCASE("until request_timeout, to the nanosecond") {
    server.pass(15s - 1ns);
    CHECK_FALSE(call.waiter.has_finished());
    CHECK(server.waiting() == 1);
    server.pass(1ns);
    CHECK(call.code() == GrpcCode::kDeadlineExceeded);
    CHECK(call.message() == "the model was not loaded in time (setting request_timeout)");
    CHECK(server.waiting() == 0);
  }
  SUBCASE("until its client leaves") {
    call->cancel();
    CHECK(call.code() == GrpcCode::kCancelled);
    CHECK(server.waiting() == 0);
    call->cancel();
    CHECK_FALSE(call.waiter.has_finished());
  }
}

TEST_CASE("grpc call: the client's deadline counts if it is earlier than request_timeout") {
  GrpcService server(limit_time);
  const FakeRequest fake;
  Calling call(server);
  call.run(fake.request, kInfer, ScriptedService::now() + 5s);
  server.pass(5s - 1ns);
  CHECK_FALSE(call.waiter.has_finished());
  server.pass(1ns);
  CHECK(call.code() == GrpcCode::kDeadlineExceeded);
}

TEST_CASE("grpc call: in the model's queue") {
  GrpcService server(limit_time);
  server.publish("m");
  server.model("m")->set_replicas(0);
  const FakeRequest fake;
  Calling call(server);
  call.run(fake.request);
  CHECK_FALSE(call.waiter.has_finished());
  SUBCASE("a replica runs it") {
    server.model("m")->set_replicas(1);
    CHECK(call.code() == GrpcCode::kOk);
  }
  SUBCASE("its client leaves: it does not run") {
    call->cancel();
    CHECK(call.code() == GrpcCode::kCancelled);
    CHECK(call.message() == "the client cancelled the request");
    CHECK(server.failed("m", ErrorCode::kCancelled) == 1);
    CHECK(server.model("m")->pending() == 0);
  }
  SUBCASE("its deadline passes: it does not run") {
    server.pass(15s);
    CHECK(call.code() == GrpcCode::kDeadlineExceeded);
    CHECK(call.message() == "the request was not answered in time (setting request_timeout)");
    CHECK(server.failed("m", ErrorCode::kDeadlineExceeded) == 1);
    CHECK(server.model("m")->pending() == 0);
  }
  SUBCASE("gRPC reports its client's deadline as a cancelled call") {
    Calling late(server);
    late.run(fake.request, kInfer, ScriptedService::now() + 10s);
    ScriptedService::pass_unseen(10s - 1ns);
    late->cancel();
    CHECK(late.code() == GrpcCode::kCancelled);
    late.release();
    Calling later(server);
    later.run(fake.request, kInfer, ScriptedService::now() + 1ns);
    ScriptedService::pass_unseen(1ns);
    later->cancel();
    CHECK(later.code() == GrpcCode::kDeadlineExceeded);
    CHECK(later.message() == "Deadline Exceeded");
    call->cancel();
    CHECK(call.code() == GrpcCode::kCancelled);
  }
}

TEST_CASE("grpc call: a run that has begun goes on without its call, whose object stays until the run ends") {
  GrpcService server(limit_time);
  server.publish("m");
  ScriptedService::hold_runs();
  const FakeRequest fake;
  GrpcCode expected = GrpcCode::kOk;
  {
    Calling call(server);
    call.run(fake.request);
    ScriptedService::wait_for_run();
    SUBCASE("its client leaves") {
      call->cancel();
      expected = GrpcCode::kCancelled;
    }
    SUBCASE("its deadline passes") {
      server.pass(15s);
      expected = GrpcCode::kDeadlineExceeded;
    }
    CHECK(call.code() == expected);
  }
  CHECK(server.counted(kInfer, expected) == 1);
  CHECK_FALSE(server.room.empty());
  CHECK(server.request_memory.used() > 0);
  ScriptedService::release_runs();
  server.wait_until_empty();
  CHECK(server.request_memory.used() == 0);
}

TEST_CASE("grpc call: a run that fails is counted and logged") {
  GrpcService server;
  server.publish("m");
  FakeRequest fake;
  fake.values[0] = -1e30F;  // kFakeFailInput
  Calling call(server);
  call.run(fake.request);
  CHECK(call.code() == GrpcCode::kInternal);
  CHECK(ScriptedService::log_lines("request failed with 500: ").size() == 1);
  CHECK(server.model("m")->statistics().totals().failures == 1);
}

TEST_CASE("grpc call: a client that reads too slowly is given up after write_timeout and the time of its bytes") {
  GrpcService server([](ServerConfig& config) {
    config.write_timeout = 30s;
    config.min_rate = 1000;
  });
  server.publish("m");
  const FakeRequest fake;
  Calling call(server), other(server);
  for (Calling* each : {&call, &other}) {
    each->run(fake.request);
    CHECK(each->code() == GrpcCode::kOk);
  }
  call->sending(5000);
  other->sending(0);
  server.room.give_up_late(ScriptedService::now() + 30s - 1ns);
  CHECK(other.waiter.given_up == 0);
  server.room.give_up_late(ScriptedService::now() + 30s);
  CHECK(other.waiter.given_up == 1);
  CHECK(call.waiter.given_up == 0);
  server.room.give_up_late(ScriptedService::now() + 35s);
  CHECK(call.waiter.given_up == 1);
  CHECK(other.waiter.given_up == 2);
  other.release();
  server.room.give_up_late(ScriptedService::now() + 35s);
  CHECK(call.waiter.given_up == 2);
  CHECK(other.waiter.given_up == 2);
}

TEST_CASE("grpc call: a call without access is not admitted") {
  const TempFolder folder;
  const std::string token = "infer-0123456789abcdef", other = "admin-0123456789abcdef";
  const std::string file = folder.write("tokens", "infer " + token + "\nadmin " + other + "\n").string();
  GrpcService server([&](ServerConfig& config) { config.token_file = file; });
  server.publish("m");
  const auto refused = [&](const std::string& authorization) {
    Calling call(server);
    CHECK_FALSE(call.admit(kInfer, TimerQueue::kNever, authorization));
    CHECK(server.request_memory.used() == 0);
    const GrpcCode code = call.code();
    CHECK_FALSE(call.message().empty());
    return code;
  };
  CHECK(refused("") == GrpcCode::kUnauthenticated);
  CHECK(refused("Bearer nonsense") == GrpcCode::kPermissionDenied);
  CHECK(refused("Bearer " + other) == GrpcCode::kPermissionDenied);
  CHECK(server.counted(kInfer, GrpcCode::kUnauthenticated) == 1);
  CHECK(server.counted(kInfer, GrpcCode::kPermissionDenied) == 2);
  CHECK(server.model("m")->statistics().totals().failures == 0);
  Calling call(server);
  CHECK(call.admit(kInfer, TimerQueue::kNever, "Bearer " + token));
  const FakeRequest fake;
  call->run(fake.request);
  CHECK(call.code() == GrpcCode::kOk);
}

TEST_CASE("grpc call: a set of a model in its name") {
  GrpcService server([](ServerConfig& config) { config.set_model("m.sets=2", "the test"); });
  server.publish("m");
  FakeRequest fake;
  fake.request.model = "m@active";
  Calling active(server);
  active.run(fake.request);
  CHECK(active.code() == GrpcCode::kOk);
  fake.request.model = "m@blue";
  Calling blue(server);
  blue.run(fake.request);
  CHECK(blue.code() == GrpcCode::kNotFound);
  CHECK(blue.message().find("'blue'") != std::string::npos);
}

TEST_CASE("grpc call: a refused message, and a cancelled one, are not run") {
  GrpcService server;
  server.publish("m");
  const FakeRequest fake;
  SUBCASE("refused") {
    Calling call(server);
    REQUIRE(call.admit());
    call->refuse({GrpcCode::kInvalidArgument, "the test says no"});
    CHECK(call.code() == GrpcCode::kInvalidArgument);
    call->refuse({GrpcCode::kInternal, {}});
    call->run(fake.request);
    CHECK_FALSE(call.waiter.has_finished());
    CHECK(call.message() == "the test says no");
  }
  SUBCASE("cancelled") {
    Calling call(server);
    REQUIRE(call.admit());
    call->cancel();
    CHECK(call.code() == GrpcCode::kCancelled);
    CHECK_FALSE(call->grow(1));
    call->run(fake.request);
    call->refuse({GrpcCode::kInternal, {}});
    CHECK_FALSE(call.waiter.has_finished());
  }
  CHECK(server.model("m")->statistics().totals().success == 0);
  CHECK(server.request_memory.used() == 0);
}

TEST_CASE("grpc call: a stream has an answer for each token, and a last one without") {
  GrpcService server;
  server.publish("loops.explicit");
  const LoopRequestOf loop(3);
  Calling call(server);
  call.run(loop.request, kStream);
  for (int64_t step = 0; step < 3; ++step) {
    CHECK(call.code() == GrpcCode::kOk);
    const codecs::TensorAnswer& answer = call->answer();
    CHECK(answer.streamed);
    CHECK_FALSE(answer.last);
    CHECK(answer.weights_name == "1");
    REQUIRE(answer.outputs.size() == 2);
    CHECK(*static_cast<const int64_t*>(answer.outputs[1].data) == step);
    CHECK(server.counted(kStream, GrpcCode::kOk) == 0);
    call->sending(100);
    call->next();
  }
  CHECK(call.code() == GrpcCode::kOk);
  CHECK(call->answer().last);
  CHECK(call->answer().finish_reason == "length");
  CHECK(server.model("loops.explicit")->statistics().totals().success == 1);
  call.release();
  CHECK(server.counted(kStream, GrpcCode::kOk) == 1);
  CHECK(server.room.empty());
}

TEST_CASE("grpc call: a model without a decode loop answers a stream's request once") {
  GrpcService server;
  server.publish("m");
  const FakeRequest fake;
  Calling call(server);
  call.run(fake.request, kStream);
  CHECK(call.code() == GrpcCode::kOk);
  CHECK(call->answer().last);
}

TEST_CASE("grpc call: a client that leaves its stream ends the loop") {
  GrpcService server;
  server.publish("loops.explicit");
  const LoopRequestOf loop(1000000);
  GrpcCode expected = GrpcCode::kCancelled;
  ErrorCode reason = ErrorCode::kCancelled;
  {
    Calling call(server);
    call.run(loop.request, kStream, ScriptedService::now() + 1h);
    CHECK(call.code() == GrpcCode::kOk);
    SUBCASE("while an answer is sent, which is the last one") {
      call->cancel();
      call->cancel();
      CHECK(call->status().code == GrpcCode::kOk);  // the answer that is being sent
      CHECK_FALSE(call.waiter.has_finished());
      call->next();
      CHECK(call.code() == GrpcCode::kCancelled);
    }
    SUBCASE("while an answer is sent, and no other one is asked for") { call->cancel(); }
    SUBCASE("while an answer is sent, by its deadline") {
      ScriptedService::pass_unseen(1h);
      call->cancel();
      call->next();
      CHECK(call.code() == GrpcCode::kDeadlineExceeded);
      expected = GrpcCode::kDeadlineExceeded;
      reason = ErrorCode::kDeadlineExceeded;
    }
    SUBCASE("while the next answer is made") {
      // Steps do not run, so the call waits once the tokens that were made are taken.
      server.model("loops.explicit")->set_replicas(0);
      for (;;) {
        call->next();
        if (!call.waiter.has_finished()) break;
        CHECK(call.code() == GrpcCode::kOk);
      }
      call->cancel();
      CHECK(call.code() == GrpcCode::kCancelled);
      server.model("loops.explicit")->set_replicas(1);
    }
  }
  CHECK(server.counted(kStream, expected) == 1);
  server.wait_until_empty();
  CHECK(server.failed("loops.explicit", reason) == 1);
  CHECK(server.model("loops.explicit")->statistics().totals().success == 0);
  CHECK(server.request_memory.used() == 0);
  // The same object answers the next stream.
  const LoopRequestOf short_loop(1);
  Calling next(server);
  next.run(short_loop.request, kStream);
  CHECK(next.code() == GrpcCode::kOk);
  next->next();
  CHECK(next.code() == GrpcCode::kOk);
  CHECK(next->answer().last);
  next.release();
  CHECK(server.counted(kStream, GrpcCode::kOk) == 1);
}

TEST_CASE("grpc call: a stream that is released before its last answer ends the loop, and counts as answered") {
  GrpcService server;
  server.publish("loops.explicit");
  const LoopRequestOf loop(1000000);
  {
    Calling call(server);
    call.run(loop.request, kStream);
    CHECK(call.code() == GrpcCode::kOk);
  }
  server.wait_until_empty();
  CHECK(server.counted(kStream, GrpcCode::kOk) == 1);
}

TEST_CASE("grpc calls: a call is resumed on another thread, also without memory") {
  GrpcService server;
  struct Resumed {
    std::atomic<bool> done{false};
    std::thread::id thread;
  } resumed;
  ThreadPool::Task task;
  task.context = &resumed;
  task.work = [](void* context) noexcept {
    Resumed& self = *static_cast<Resumed*>(context);
    self.thread = std::this_thread::get_id();
    self.done = true;
    self.done.notify_all();
  };
  {
    const test::NoMemory none;
    server.room.resume_later(task);
  }
  resumed.done.wait(false);
  CHECK(resumed.thread != std::this_thread::get_id());
}

}  // namespace sconce::server::rpc
