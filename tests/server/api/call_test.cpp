#include "server/api/call.h"

#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <variant>

#include "server/api/document_call.h"
#include "tests/errors.h"
#include "tests/server/scripted_service.h"
#include "tests/server/tensor_requests.h"

namespace sconce::server::api {

using namespace std::chrono_literals;
using test::FakeRequest;
using test::LoopRequestOf;
using test::ScriptedService;

namespace {

using Holder = Call::Holder;
constexpr auto kNever = Call::Clock::time_point::max();

void limit_time(ServerConfig& config) { config.set_model("*.request_timeout=15s", "the test"); }

// A call of a protocol that has no more than this.
struct Caller {
  explicit Caller(ScriptedService& service)
      : service(service), call(*service.admission, *service.telemetry, 0, &Caller::notify, this) {}

  void begin(const Call::Head& head = {}, Call::Clock::time_point deadline = kNever) {
    call.begin(head, id, ScriptedService::now(), deadline);
  }
  registry::ModelUse find(const Call::Target& target = {"m", "", ""}) {
    return call.find(*service.repository->snapshot(), 0, target);
  }
  // Up to the run. Returns whether it has ended.
  bool run(const codecs::TensorRequest& request, codecs::Inference::Form form = codecs::Inference::Form::kInfer) {
    const Call::Target target{request.model, "", ""};
    call.open(find(target), target, form, false);
    call.inference().decode(request, nullptr);
    REQUIRE(call.choose_weights(id));
    return call.run();
  }
  void wait() {
    for (int now = notices; now == 0; now = notices) notices.wait(now);
    CHECK(--notices == 0);
  }

  ScriptedService& service;
  RequestId id;
  std::atomic<int> notices{0};
  Call call;

 private:
  static void notify(void* context) noexcept {
    Caller& self = *static_cast<Caller*>(context);
    ++self.notices;
    self.notices.notify_all();
  }
};

// A document of the model "m".
struct Document {
  explicit Document(Caller& caller, std::string_view path = "/v2/models/m", http::Listeners listener = http::kPublic)
      : caller(caller), match(find_route(path, http::Method::kGet, listener)) {}
  bool write() { return ask(&DocumentCall::write); }
  bool resume() { return ask(&DocumentCall::resume); }

  Caller& caller;
  const http::RouteMatch match;
  http::Response response;

 private:
  bool ask(bool (DocumentCall::*function)(const OnIoThread&, const RequestView&, http::Response&)) {
    const std::shared_ptr<const registry::Catalog> catalog = caller.service.repository->snapshot();
    response.reset();
    DocumentCall document(caller.call);
    return (document.*function)(std::get<OnIoThread>(route_of(match).handler),
                                {*caller.service.admission, *caller.service.telemetry, *catalog, match, {}}, response);
  }
};

}  // namespace

TEST_CASE("call: a loaded model is found at once") {
  ScriptedService service;
  service.publish("m");
  Caller caller(service);
  caller.begin();
  CHECK(caller.find());
  CHECK(caller.call.holder() == Holder::kNone);
  CHECK(error_from(ErrorCode::kNotFound, [&] { caller.find({"other", "", ""}); }).find("'other'") != std::string::npos);
}

TEST_CASE("call: the loader holds a call whose model is being loaded") {
  ScriptedService service(limit_time);
  Caller caller(service);
  caller.begin();
  CHECK_FALSE(caller.find());
  CHECK(caller.call.holder() == Holder::kLoader);
  CHECK(caller.call.loading());
  CHECK(caller.call.deadline() == ScriptedService::now() + 15s);
  CHECK(std::string(caller.call.late_message()).find("not loaded in time") != std::string::npos);
  SUBCASE("until it is loaded") {
    service.end_load();
    caller.wait();
    CHECK(caller.call.noticed() == Holder::kLoader);
    CHECK(caller.call.holder() == Holder::kNone);
    CHECK_NOTHROW(caller.call.check_load());
    CHECK(caller.find());
  }
  SUBCASE("until the load fails: the error is thrown once") {
    service.end_load("the test says no");
    caller.wait();
    CHECK(caller.call.noticed() == Holder::kLoader);
    CHECK(error_from(ErrorCode::kModelFailed, [&] { caller.call.check_load(); }) == "the test says no");
    CHECK_NOTHROW(caller.call.check_load());
    CHECK(error_from(ErrorCode::kModelFailed, [&] { caller.find(); }) == "the test says no");  // it failed just now
  }
  SUBCASE("until it is cancelled: no notice comes") {
    CHECK(caller.call.cancel());
    CHECK(caller.call.holder() == Holder::kNone);
    CHECK(service.waiting() == 0);
    CHECK_FALSE(caller.call.cancel());
  }
  SUBCASE("a notice that is under way cannot be cancelled, and is taken back") {
    service.end_load();
    while (caller.notices == 0) caller.notices.wait(0);
    CHECK_FALSE(caller.call.cancel());
    CHECK(caller.call.holder() == Holder::kLoader);
    CHECK(caller.call.take_back());
    CHECK(caller.call.holder() == Holder::kNone);
  }
}

TEST_CASE("call: the time limit of a wait") {
  ScriptedService service(limit_time);
  Caller caller(service);
  SUBCASE("the client's, if it is earlier") {
    caller.begin({}, ScriptedService::now() + 5s);
    caller.call.wait_for_load("m");
    CHECK(caller.call.deadline() == ScriptedService::now() + 5s);
  }
  SUBCASE("the setting's, if it is earlier") {
    caller.begin({}, ScriptedService::now() + 1h);
    caller.call.wait_for_load("m");
    CHECK(caller.call.deadline() == ScriptedService::now() + 15s);
  }
  SUBCASE("none for administration") {
    caller.begin({}, ScriptedService::now() + 5s);
    caller.call.wait_for_load("m", false);
    CHECK(caller.call.deadline() == kNever);
  }
  CHECK(caller.call.cancel());
}

TEST_CASE("call: a wait that the queue of the load refuses leaves no holder") {
  ScriptedService service([](ServerConfig& config) { config.load_queue = 1; });
  Caller first(service), second(service);
  first.begin();
  second.begin();
  CHECK_FALSE(first.find());
  CHECK(error_from(ErrorCode::kQueueFull, [&] { second.find(); }).find("load_queue") != std::string::npos);
  CHECK(second.call.holder() == Holder::kNone);
  CHECK(first.call.cancel());
}

TEST_CASE("call: the model holds a call that runs") {
  ScriptedService service(limit_time);
  service.publish("m");
  service.model("m")->set_replicas(0);
  const FakeRequest fake;
  Caller caller(service);
  caller.begin();
  REQUIRE_FALSE(caller.run(fake.request));
  CHECK(caller.call.running());
  CHECK(caller.call.deadline() == ScriptedService::now() + 15s);
  CHECK(std::string(caller.call.late_message()).find("not answered in time") != std::string::npos);
  SUBCASE("until the run has ended") {
    service.model("m")->set_replicas(1);
    caller.wait();
    CHECK(caller.call.noticed() == Holder::kModel);
    CHECK(caller.call.holder() == Holder::kNone);
    caller.call.finish_run();
    codecs::TensorAnswer answer;
    caller.call.inference().encode(answer);
    caller.call.inference().succeed();
    CHECK(answer.model == "m");
  }
  SUBCASE("until it is cancelled in the queue") {
    CHECK(caller.call.cancel());
    CHECK(caller.call.holder() == Holder::kNone);
    CHECK(service.model("m")->pending() == 0);
  }
  SUBCASE("until the run has ended, if it has begun") {
    ScriptedService::hold_runs();
    service.model("m")->set_replicas(1);
    ScriptedService::wait_for_run();
    CHECK_FALSE(caller.call.cancel());
    CHECK(caller.call.running());
    ScriptedService::release_runs();
    caller.wait();
    CHECK(caller.call.take_back());
    CHECK(caller.call.holder() == Holder::kNone);
  }
  caller.call.clear();
}

TEST_CASE("call: a decode loop whose answer is no stream is held until its last token") {
  ScriptedService service;
  service.publish("loops.explicit");
  const LoopRequestOf loop(5);
  Caller caller(service);
  caller.begin();
  REQUIRE_FALSE(caller.run(loop.request, codecs::Inference::Form::kGenerate));
  CHECK(caller.call.running());
  CHECK(caller.call.deadline() == kNever);  // the loop watches its own
  caller.wait();
  CHECK(caller.call.noticed() == Holder::kModel);
  CHECK_FALSE(caller.call.running());
  caller.call.finish_run();
  codecs::TensorAnswer answer;
  caller.call.inference().encode(answer);
  CHECK(answer.model == "loops.explicit");
  caller.call.inference().succeed();
  CHECK(service.model("loops.explicit")->statistics().totals().success == 1);
  caller.call.clear();
}

TEST_CASE("call: a streamed decode loop keeps the call from token to token") {
  ScriptedService service;
  service.publish("loops.explicit");
  const LoopRequestOf loop(3);
  Caller caller(service);
  caller.begin();
  REQUIRE_FALSE(caller.run(loop.request, codecs::Inference::Form::kInferStream));
  codecs::TensorAnswer answer;
  int tokens = 0;
  for (bool last = false, over = false; !last;) {
    CHECK(caller.call.running() != over);
    const scheduling::DecodeLoop::Look look = caller.call.take_tokens(1);
    if (look == scheduling::DecodeLoop::Look::kWait) {
      caller.wait();
      CHECK(caller.call.noticed() == Holder::kModel);
      CHECK(caller.call.running());  // the model still has it
      continue;
    }
    over = look == scheduling::DecodeLoop::Look::kOver;
    caller.call.inference().encode(answer);
    last = answer.last;
    tokens += last ? 0 : 1;
  }
  CHECK(tokens == 3);
  CHECK(answer.finish_reason == "length");
  CHECK(caller.call.holder() == Holder::kNone);
  caller.call.clear();
}

TEST_CASE("call: a streamed decode loop that is cancelled gives the call back with its last notice") {
  ScriptedService service;
  service.publish("loops.explicit");
  const LoopRequestOf loop(1000000);
  Caller caller(service);
  caller.begin();
  REQUIRE_FALSE(caller.run(loop.request, codecs::Inference::Form::kInferStream));
  SUBCASE("while a step runs or waits") {
    if (!caller.call.cancel()) {
      CHECK(caller.call.running());
      do {
        for (int now = caller.notices; now == 0; now = caller.notices) caller.notices.wait(now);
        --caller.notices;
      } while (!caller.call.take_back());
    }
  }
  SUBCASE("while it is paused, because nobody takes its tokens") {
    while (caller.call.take_tokens(1) == scheduling::DecodeLoop::Look::kWait) caller.wait();
    while (service.model("loops.explicit")->pending() > 0) std::this_thread::yield();
    if (!caller.call.cancel()) {
      do {
        for (int now = caller.notices; now == 0; now = caller.notices) caller.notices.wait(now);
        --caller.notices;
      } while (!caller.call.take_back());
    }
  }
  CHECK(caller.call.holder() == Holder::kNone);
  caller.call.clear();
}

TEST_CASE("call: a decode loop stops at the client's deadline") {
  ScriptedService service;
  service.publish("loops.explicit");
  const LoopRequestOf loop(1000000);
  Caller caller(service);
  caller.begin({}, ScriptedService::now());
  REQUIRE_FALSE(caller.run(loop.request, codecs::Inference::Form::kGenerate));
  caller.wait();
  CHECK(caller.call.noticed() == Holder::kModel);
  caller.call.finish_run();
  codecs::TensorAnswer answer;
  caller.call.inference().encode(answer);
  CHECK(answer.finish_reason == "deadline");
  caller.call.clear();
}

TEST_CASE("call: a decode loop without all inputs is refused") {
  ScriptedService service;
  service.publish("loops.explicit");
  LoopRequestOf loop(5);
  loop.request.inputs.pop_back();
  Caller caller(service);
  caller.begin();
  CHECK(error_from(ErrorCode::kInvalidArgument, [&] {
          caller.run(loop.request, codecs::Inference::Form::kInferStream);
        }) == "the request lacks input 'ARGS[1]'");
  CHECK(caller.call.holder() == Holder::kNone);
  caller.call.clear();
}

TEST_CASE("call: only a large answer takes memory, until it was sent") {
  ScriptedService service;
  Caller caller(service);
  caller.begin();
  caller.call.hold_answer(64 * 1024);
  CHECK(service.request_memory.used() == 0);
  caller.call.hold_answer(64 * 1024 + 1);
  CHECK(service.request_memory.used() == 64 * 1024 + 1);
  caller.call.drop_answer();
  CHECK(service.request_memory.used() == 0);
  CHECK(error_from(ErrorCode::kTooLarge, [&] { caller.call.hold_answer(size_t{1} << 40); }).find("an answer") !=
        std::string::npos);
}

TEST_CASE("call: the log has failures of the server, and not of its clients") {
  ScriptedService service;
  Caller caller(service);
  caller.begin();
  const auto fail = [&](ErrorCode code) {
    return caller.call.fail(std::make_exception_ptr(Error(code, "the problem"))).status;
  };
  CHECK(fail(ErrorCode::kInvalidArgument) == 400);
  CHECK(ScriptedService::log_lines("request failed").empty());
  CHECK(fail(ErrorCode::kModelFailed) == 500);
  CHECK(ScriptedService::log_lines("request failed with 500: the problem").size() == 1);
}

TEST_CASE("call: the client's id and trace") {
  ScriptedService service;
  Caller caller(service);
  const std::string trace = "4bf92f3577b34da6a3ce929d0e0e4736";
  const std::string parent = "00-" + trace + "-00f067aa0ba902b7-01";
  caller.begin({"an-id", parent, "", ""});
  CHECK(caller.id.text() == "an-id");
  CHECK(caller.id.given());
  CHECK(caller.id.trace() == trace);
  caller.begin();  // the next request has none
  CHECK_FALSE(caller.id.given());
  CHECK(caller.id.trace().empty());
}

TEST_CASE("document call: a document of a loaded model, or of none, is written at once") {
  ScriptedService service;
  Caller caller(service);
  caller.begin();
  Document server(caller, "/v2");
  CHECK(server.write());
  service.publish("m");
  Document document(caller);
  CHECK(document.write());
  CHECK(document.response.text().view().find("\"name\":\"m\"") != std::string_view::npos);
  CHECK(caller.call.holder() == Holder::kNone);
  CHECK(service.waiting() == 0);
}

TEST_CASE("document call: the loader holds it while its model is loaded") {
  ScriptedService service(limit_time);
  Caller caller(service);
  caller.begin({}, ScriptedService::now() + 10s);
  Document document(caller);
  CHECK_FALSE(document.write());
  CHECK(caller.call.loading());
  CHECK(caller.call.deadline() == ScriptedService::now() + 10s);
  CHECK(service.waiting() == 1);
  SUBCASE("then it is written") {
    service.end_load();
    caller.wait();
    CHECK(caller.call.noticed() == Holder::kLoader);
    CHECK(document.resume());
    CHECK(document.response.text().view().find("\"name\":\"m\"") != std::string_view::npos);
  }
  SUBCASE("and again if it was evicted meanwhile, until the same time") {
    service.evicts = true;
    service.end_load();
    caller.wait();
    service.evicts = false;
    caller.call.noticed();
    CHECK_FALSE(document.resume());
    CHECK(caller.call.loading());
    CHECK(caller.call.deadline() == ScriptedService::now() + 10s);
    service.end_load();
    caller.wait();
    caller.call.noticed();
    CHECK(document.resume());
  }
  SUBCASE("the error of the load is thrown") {
    service.end_load("the test says no");
    caller.wait();
    caller.call.noticed();
    CHECK(error_from(ErrorCode::kModelFailed, [&] { document.resume(); }) == "the test says no");
    CHECK(caller.call.holder() == Holder::kNone);
  }
}

TEST_CASE("document call: a route that does not take the request is refused before the load and after it") {
  ScriptedService service;
  Caller caller(service);
  caller.begin();
  SUBCASE("a set, for a route that distinguishes none: before") {
    Document config(caller, "/v2/models/m@blue/config");
    CHECK(error_from(ErrorCode::kNotFound, [&] { config.write(); }).find("'m@blue' is not found") != std::string::npos);
    CHECK(service.waiting() == 0);
  }
  SUBCASE("the same: after") {
    Document config(caller, "/v2/models/m@blue/config");
    caller.call.wait_for_load("m");
    service.end_load();
    caller.wait();
    caller.call.noticed();
    CHECK(error_from(ErrorCode::kNotFound, [&] { config.resume(); }).find("'m@blue' is not found") !=
          std::string::npos);
  }
  SUBCASE("another listener's route, unless http_admin allows it") {
    Document settings(caller, "/v2/logging");
    CHECK(error_from(ErrorCode::kForbidden, [&] { settings.write(); }).find("http_admin") != std::string::npos);
    Document own(caller, "/v2/logging", http::kAdmin);
    CHECK(own.write());
    service.config.http_admin = true;
    CHECK(settings.write());
  }
  CHECK(caller.call.holder() == Holder::kNone);
}

TEST_CASE("document call: only the load tells which sets a model has") {
  ScriptedService service([](ServerConfig& config) { config.set_model("m.sets=2", "the test"); });
  Caller caller(service);
  caller.begin();
  std::string_view path;
  SUBCASE("a set that is not there") { path = "/v2/models/m@blue"; }
  SUBCASE("the active set") { path = "/v2/models/m@active"; }
  Document document(caller, path);
  CHECK_FALSE(document.write());
  service.end_load();
  caller.wait();
  caller.call.noticed();
  if (path == "/v2/models/m@active") {
    CHECK(document.resume());
  } else {
    CHECK(error_from(ErrorCode::kNotFound, [&] { document.resume(); }).find("blue") != std::string::npos);
  }
}

}  // namespace sconce::server::api
