#include "server/grpc/grpc_document.h"

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/files.h"
#include "tests/runner/counted_memory.h"
#include "tests/server/grpc/grpc_service.h"

namespace sconce::server::rpc {

using namespace std::chrono_literals;
using test::GrpcService;
using test::ScriptedService;

namespace {

constexpr auto kMetadata = api::GrpcMethod::kModelMetadata;
const std::string kOfModel = R"({"name": "m"})";

// A call, and what libsconce_grpc is told of it.
class Asked {
 public:
  explicit Asked(GrpcService& server, api::GrpcMethod method = kMetadata,
                 ScriptedService::Clock::time_point deadline = TimerQueue::kNever) {
    GrpcCaller caller;
    caller.peer = "192.0.2.7:50000";
    caller.request_id = "an-id";
    caller.deadline = deadline;
    call_ = std::make_shared<GrpcDocument>(server.room, method, caller,
                                           [this](const GrpcStatus& status, std::string_view text) {
                                             const std::lock_guard lock(mutex_);
                                             ++answers_;
                                             status_ = status;
                                             text_ = text;
                                             changed_.notify_all();
                                           });
    seen_ = call_;
  }
  // Drops the call unless it can be cancelled.
  bool start(const std::string& message = kOfModel, std::string_view authorization = {}) {
    const bool waits = call_->start(authorization, message);
    if (!waits) call_.reset();
    return waits;
  }
  void cancel() { call_->cancel(); }
  void forget() { call_.reset(); }
  bool has_answer() {
    const std::lock_guard lock(mutex_);
    return answers_ > 0;
  }
  GrpcCode code() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return answers_ > 0; });
    CHECK(answers_ == 1);
    return status_.code;
  }
  std::string message() {
    const std::lock_guard lock(mutex_);
    return status_.message;
  }
  std::string text() {
    const std::lock_guard lock(mutex_);
    return text_;
  }
  int answers() {
    const std::lock_guard lock(mutex_);
    return answers_;
  }
  // Until nothing refers to the call.
  void wait_until_gone() {
    call_.reset();
    while (!seen_.expired()) std::this_thread::yield();
  }

 private:
  std::shared_ptr<GrpcDocument> call_;
  std::weak_ptr<GrpcDocument> seen_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int answers_ = 0;
  GrpcStatus status_;
  std::string text_;
};

// Keeps all threads of CallRoom busy, so that calls are not resumed.
class BusyRoom {
 public:
  explicit BusyRoom(CallRoom& room) {
    for (One& one : all_) {
      one.task.context = &one;
      one.task.work = [](void* context) noexcept {
        One& self = *static_cast<One*>(context);
        self.busy.open.wait(false);
        ++self.busy.done;
        self.busy.done.notify_all();
      };
      room.resume_later(one.task);
    }
  }
  void let_go() {
    open = true;
    open.notify_all();
    for (size_t now = done; now < all_.size(); now = done) done.wait(now);
  }

 private:
  struct One {
    explicit One(BusyRoom& busy) : busy(busy) {}
    BusyRoom& busy;
    ThreadPool::Task task;
  };
  std::atomic<bool> open{false};
  std::atomic<size_t> done{0};
  // The most threads of a ThreadPool.
  std::array<One, 4> all_{One(*this), One(*this), One(*this), One(*this)};
};

void limit_time(ServerConfig& config) {
  config.set_model("*.request_timeout=15s", "the test");
  config.access_log = true;
}

}  // namespace

TEST_CASE("grpc document: every method has a route") { CHECK_NOTHROW(GrpcDocument::check_routes()); }

TEST_CASE("grpc document: it is answered at once, counted and written to the access log") {
  GrpcService server([](ServerConfig& config) { config.access_log = true; });
  server.publish("m");
  Asked asked(server);
  CHECK_FALSE(asked.start());
  CHECK(asked.code() == GrpcCode::kOk);
  CHECK(asked.text().find("\"name\":\"m\"") != std::string::npos);
  CHECK(server.counted(kMetadata, GrpcCode::kOk) == 1);
  const std::vector<std::string> lines = ScriptedService::log_lines("gRPC ModelMetadata");
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].find("\"status\":0,\"bytes\":" + std::to_string(asked.text().size())) != std::string::npos);
  CHECK(lines[0].find("an-id") != std::string::npos);
  asked.wait_until_gone();
}

TEST_CASE("grpc document: it waits for a model that is loaded on demand") {
  GrpcService server(limit_time);
  Asked asked(server);
  CHECK(asked.start());
  server.wait_for_load();
  CHECK_FALSE(asked.has_answer());
  SUBCASE("and is answered when it is loaded") {
    server.end_load();
    CHECK(asked.code() == GrpcCode::kOk);
    CHECK(asked.text().find("\"name\":\"m\"") != std::string::npos);
    CHECK(server.counted(kMetadata, GrpcCode::kOk) == 1);
  }
  SUBCASE("also if gRPC has forgotten it") {
    asked.forget();
    server.end_load();
    CHECK(asked.code() == GrpcCode::kOk);
  }
  SUBCASE("again if it was evicted meanwhile") {
    server.evicts = true;
    server.end_load();
    server.wait_for_load(2);
    CHECK_FALSE(asked.has_answer());
    server.evicts = false;
    server.end_load();
    CHECK(asked.code() == GrpcCode::kOk);
    CHECK(server.counted(kMetadata, GrpcCode::kOk) == 1);
  }
  SUBCASE("and fails with the load, which the log says") {
    server.end_load("the test says no");
    CHECK(asked.code() == GrpcCode::kInternal);
    CHECK(asked.message() == "the test says no");
    CHECK(server.counted(kMetadata, GrpcCode::kInternal) == 1);
    const std::vector<std::string> failures = ScriptedService::log_lines("request failed with 500: the test says no");
    REQUIRE(failures.size() == 1);
    CHECK(failures[0].find("an-id") != std::string::npos);
    const std::vector<std::string> accesses = ScriptedService::log_lines("gRPC ModelMetadata");
    REQUIRE(accesses.size() == 1);
    CHECK(accesses[0].find("\"status\":13") != std::string::npos);
  }
  SUBCASE("until request_timeout, to the nanosecond") {
    server.pass(15s - 1ns);
    CHECK_FALSE(asked.has_answer());
    CHECK(server.waiting() == 1);
    server.pass(1ns);
    CHECK(asked.code() == GrpcCode::kDeadlineExceeded);
    CHECK(asked.message() == "the model was not loaded in time (setting request_timeout)");
    CHECK(server.waiting() == 0);
    CHECK(server.counted(kMetadata, GrpcCode::kDeadlineExceeded) == 1);
    asked.cancel();
    server.pass(1h);
  }
  SUBCASE("until its client leaves") {
    asked.cancel();
    CHECK(asked.code() == GrpcCode::kCancelled);
    CHECK(asked.message() == "the client cancelled the request");
    CHECK(server.waiting() == 0);
    CHECK(server.counted(kMetadata, GrpcCode::kCancelled) == 1);
    server.pass(1h);
    asked.cancel();
  }
  asked.wait_until_gone();
  CHECK(asked.answers() == 1);
}

TEST_CASE("grpc document: the client's deadline counts if it is earlier than request_timeout") {
  GrpcService server(limit_time);
  Asked asked(server, kMetadata, ScriptedService::now() + 5s);
  CHECK(asked.start());
  SUBCASE("the server sees it") {
    server.pass(5s - 1ns);
    CHECK_FALSE(asked.has_answer());
    server.pass(1ns);
    CHECK(asked.code() == GrpcCode::kDeadlineExceeded);
  }
  SUBCASE("gRPC reports it") {
    BusyRoom busy(server.room);  // the server sees it later
    server.pass(5s);
    asked.cancel();
    CHECK(asked.code() == GrpcCode::kDeadlineExceeded);
    CHECK(asked.message() == "Deadline Exceeded");
    busy.let_go();
  }
  asked.wait_until_gone();
  CHECK(asked.answers() == 1);
}

TEST_CASE("grpc document: a client that leaves after the load and before the answer has one answer") {
  GrpcService server(limit_time);
  Asked asked(server);
  CHECK(asked.start());
  BusyRoom busy(server.room);
  server.end_load();
  while (server.waiting() > 0) std::this_thread::yield();
  SUBCASE("cancelled") {
    asked.cancel();
    CHECK(asked.code() == GrpcCode::kCancelled);
    busy.let_go();
  }
  SUBCASE("when its deadline passes, the first of two threads answers it") {
    server.pass(15s);
    busy.let_go();
    const GrpcCode code = asked.code();
    CHECK((code == GrpcCode::kOk || code == GrpcCode::kDeadlineExceeded));
  }
  asked.wait_until_gone();
  CHECK(asked.answers() == 1);
  CHECK(server.counted(kMetadata, GrpcCode::kOk) + server.counted(kMetadata, GrpcCode::kCancelled) +
            server.counted(kMetadata, GrpcCode::kDeadlineExceeded) ==
        1);
}

TEST_CASE("grpc document: a call without access is refused, and loads nothing") {
  const TempFolder folder;
  const std::string token = "infer-0123456789abcdef";
  const std::string file = folder.write("tokens", "infer " + token + "\n").string();
  GrpcService server([&](ServerConfig& config) { config.token_file = file; });
  Asked none(server), wrong(server), live(server, api::GrpcMethod::kServerLive), right(server);
  CHECK_FALSE(none.start());
  CHECK(none.code() == GrpcCode::kUnauthenticated);
  CHECK_FALSE(wrong.start(kOfModel, "Bearer infer-0123456789abcdeX"));
  CHECK(wrong.code() == GrpcCode::kPermissionDenied);
  CHECK_FALSE(live.start("{}"));
  CHECK(live.code() == GrpcCode::kOk);  // a probe has no token
  CHECK(server.waiting() == 0);
  CHECK(right.start(kOfModel, "Bearer " + token));
  server.end_load();
  CHECK(right.code() == GrpcCode::kOk);
  for (Asked* asked : {&none, &wrong, &live, &right}) asked->wait_until_gone();
}

TEST_CASE("grpc document: control needs http_admin, and the loader gets nothing without") {
  GrpcService server;
  Asked load(server, api::GrpcMethod::kRepositoryModelLoad), settings(server, api::GrpcMethod::kLogSettings);
  CHECK_FALSE(load.start(R"({"model_name": "m"})"));
  CHECK(load.code() == GrpcCode::kPermissionDenied);
  CHECK_FALSE(settings.start("{}"));
  CHECK(settings.code() == GrpcCode::kPermissionDenied);
  for (Asked* asked : {&load, &settings}) asked->wait_until_gone();
}

TEST_CASE("grpc document: a version, and settings to change, are those of the message") {
  GrpcService server([](ServerConfig& config) { config.http_admin = true; });
  server.publish("m");
  const auto code = [&](api::GrpcMethod method, const std::string& message) {
    Asked asked(server, method);
    CHECK_FALSE(asked.start(message));
    const GrpcCode code = asked.code();
    asked.wait_until_gone();
    return code;
  };
  CHECK(code(kMetadata, R"({"name": "m", "version": "1"})") == GrpcCode::kOk);
  CHECK(code(kMetadata, R"({"name": "m", "version": "9"})") == GrpcCode::kNotFound);
  CHECK(code(api::GrpcMethod::kLogSettings, "{}") == GrpcCode::kOk);
  CHECK(code(api::GrpcMethod::kLogSettings, R"({"settings": {"nonsense": {"bool_param": true}}})") ==
        GrpcCode::kInvalidArgument);
}

TEST_CASE("grpc document: a set of a model that is not loaded, as over HTTP") {
  GrpcService server;
  SUBCASE("a route that distinguishes no sets refuses it at once") {
    Asked config(server, api::GrpcMethod::kModelConfig);
    CHECK_FALSE(config.start(R"({"name": "m@blue"})"));
    CHECK(config.code() == GrpcCode::kNotFound);
    CHECK(config.message().find("'m@blue' is not found") != std::string::npos);
    CHECK(server.waiting() == 0);
    config.wait_until_gone();
  }
  SUBCASE("control refuses it at once") {
    server.config.http_admin = true;
    Asked load(server, api::GrpcMethod::kRepositoryModelLoad);
    CHECK_FALSE(load.start(R"({"model_name": "m@blue"})"));
    CHECK(load.code() == GrpcCode::kNotFound);
    load.wait_until_gone();
  }
  SUBCASE("only the load tells which sets the model has") {
    Asked metadata(server);
    CHECK(metadata.start(R"({"name": "m@blue"})"));
    CHECK(server.waiting() == 1);
    server.end_load();
    CHECK(metadata.code() == GrpcCode::kNotFound);
    CHECK(metadata.message().find("'m@blue' is not found: the model holds no named sets") != std::string::npos);
    metadata.wait_until_gone();
  }
  SUBCASE("it is ready if a request would load the model") {
    Asked ready(server, api::GrpcMethod::kModelReady);
    CHECK_FALSE(ready.start(R"({"name": "m@blue"})"));
    CHECK(ready.code() == GrpcCode::kOk);
    ready.wait_until_gone();
  }
}

TEST_CASE("grpc document: the loader executes manual loads, and reports their ends") {
  GrpcService server([](ServerConfig& config) {
    config.http_admin = true;
    config.access_log = true;
  });
  server.control->start();
  constexpr auto kLoad = api::GrpcMethod::kRepositoryModelLoad, kUnload = api::GrpcMethod::kRepositoryModelUnload;
  Asked load(server, kLoad), unload(server, kUnload), wrong(server, kLoad), nameless(server, kLoad);
  CHECK_FALSE(load.start(R"({"model_name": "m"})"));
  CHECK(load.code() == GrpcCode::kOk);
  CHECK(load.text() == "{}");
  CHECK(server.counted(kLoad, GrpcCode::kOk) == 1);
  CHECK(server.model("m"));
  CHECK_FALSE(unload.start(R"({"model_name": "m"})"));
  CHECK(unload.code() == GrpcCode::kOk);
  CHECK_FALSE(wrong.start(R"({"model_name": "other"})"));
  CHECK(wrong.code() == GrpcCode::kNotFound);
  CHECK(ScriptedService::log_lines("gRPC RepositoryModelLoad").size() == 2);
  CHECK_FALSE(nameless.start("{}"));
  CHECK(nameless.code() == GrpcCode::kInvalidArgument);
  for (Asked* asked : {&load, &unload, &wrong, &nameless}) asked->wait_until_gone();
}

}  // namespace sconce::server::rpc
