// HttpCall, on an I/O thread that the test turns by hand.
#include "server/api/http_call.h"

#include <doctest/doctest.h>
#include <sys/socket.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/api/api_handler.h"
#include "tests/errors.h"
#include "tests/server/http/connections/served.h"
#include "tests/server/scripted_service.h"

using namespace sconce;
using namespace sconce::server;
using namespace std::chrono_literals;
using sconce::test::ScriptedService;
using HttpAnswer = server::test::Answer;
using server::test::Client;

namespace {

const std::string kBody = R"({"inputs":[{"name":"INPUT__0","datatype":"FP32","shape":[1,4],"data":[1,2,3,4]}]})";
const std::string kInfer = "/v2/models/m/infer", kStream = "/v2/models/loops.explicit/generate_stream";

struct Server : ScriptedService {
  explicit Server(const std::function<void(ServerConfig&)>& set = [](auto&) {}) : ScriptedService(set) {
    io.answer_by(std::make_unique<ApiHandler>(*admission, *rollout, *telemetry, io));
  }
  ~Server() { io.stop(); }

  Client connect(Listeners listener = kPublic) {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    Client client{Descriptor(ends[0])};
    const auto address = boost::asio::ip::make_address("192.0.2.7");
    io.serve(Accepted(Descriptor(ends[1]), {address, 50000}, listener, OpenConnections::Slot(connections, listener)));
    settle();
    return client;
  }
  void settle() {
    for (int i = 0; i < 12; ++i) {
      io.loop().wake();
      io.turn();
    }
  }
  void after(Clock::duration time) {
    pass(time);
    settle();
  }
  // Turns until other threads have done their part.
  void settle_until(const auto& condition) {
    for (settle(); !condition(); settle()) std::this_thread::yield();
  }
  HttpAnswer answer(Client& client) {
    std::vector<HttpAnswer> all;
    settle_until([&] {
      all = client.answers();
      return !all.empty();
    });
    REQUIRE(all.size() == 1);
    return all.front();
  }
  int64_t open() const { return connections.of(kPublic); }
  uint64_t failures(const std::string& name) const { return model(name)->statistics().totals().failures; }

  IoThread io{{config, telemetry->counters, connections, request_memory, admission->credentials, telemetry->refusals,
               telemetry->failures, &ScriptedService::now},
              0};
};

void limit_time(ServerConfig& config) {
  config.set_model("*.request_timeout=15s", "the test");
  config.access_log = true;
}

}  // namespace

TEST_CASE("http call: it is answered by the model, counted and written to the access log") {
  Server server(limit_time);
  server.publish("m");
  Client client = server.connect();
  client.post(kInfer, kBody, "X-Request-Id: an-id\r\n");
  const HttpAnswer answer = server.answer(client);
  CHECK(answer.status == 200);
  CHECK(contains(answer.body, "\"data\":[1"));
  CHECK(answer.has("X-Request-Id: an-id"));
  CHECK(server.model("m")->statistics().totals().success == 1);
  const std::vector<std::string> lines = ScriptedService::log_lines("POST " + kInfer);
  REQUIRE(lines.size() == 1);
  CHECK(contains(lines[0], "\"status\":200"));
  CHECK(contains(lines[0], "an-id"));
}

TEST_CASE("http call: a request that no route takes, or without access, is refused") {
  const TempFolder folder;
  const std::string tokens = folder.write("tokens", "infer 0123456789abcdef\n").string();
  Server server([&](ServerConfig& config) { config.token_file = tokens; });
  server.publish("m");
  Client client = server.connect();
  const std::string token = "Authorization: Bearer 0123456789abcdef\r\n";
  SUBCASE("a path that is not there") {
    client.get("/v2/nothing", token);
    const HttpAnswer answer = server.answer(client);
    CHECK(answer.status == 404);
    CHECK(answer.has("X-Request-Id: "));  // the log's lines about it
  }
  SUBCASE("a method that the path does not take") {
    client.get(kInfer, token);
    const HttpAnswer answer = server.answer(client);
    CHECK(answer.status == 405);
    CHECK(answer.has("Allow: POST"));
  }
  SUBCASE("no token") {
    client.post(kInfer, kBody);
    const HttpAnswer answer = server.answer(client);
    CHECK(answer.status == 401);
    CHECK(answer.has("WWW-Authenticate: Bearer"));
    CHECK(answer.has("Connection: close"));
    CHECK(server.model("m")->statistics().totals().success == 0);
  }
  SUBCASE("administration") {
    client.post("/v2/repository/models/m/load", "{}", token);
    CHECK(server.answer(client).status == 403);
  }
  SUBCASE("a set of a document without sets") {
    client.get("/v2/models/m@blue", token);
    CHECK(server.answer(client).status == 404);
  }
  SUBCASE("a body that the model's inputs cannot need is refused before it is read") {
    client.send("POST " + kInfer + " HTTP/1.1\r\nHost: x\r\n" + token + "Content-Length: 99999999999\r\n\r\n");
    const HttpAnswer answer = server.answer(client);
    CHECK(answer.status == 413);
    CHECK(answer.has("Connection: close"));
  }
}

TEST_CASE("http call: a name of a web page is no Host of a server that only its address protects") {
  Server server;
  server.admission->checks_host = kPublic;
  const auto status_for = [&](const std::string& host) {
    Client client = server.connect();
    client.send("GET /v2 HTTP/1.1\r\nHost: " + host + "\r\n\r\n");
    return server.answer(client).status;
  };
  CHECK(status_for("evil.example") == 403);
  CHECK(status_for("localhost:8000") == 200);
  CHECK(status_for("127.0.0.1") == 200);
}

TEST_CASE("http call: it waits for a model that is loaded on demand") {
  Server server(limit_time);
  Client client = server.connect();
  std::string path = "/v2/models/m";
  SUBCASE("inference") {
    path = kInfer;
    client.post(path, kBody);
  }
  SUBCASE("a document") { client.get(path); }
  server.settle();
  server.wait_for_load();
  CHECK(server.waiting() == 1);
  CHECK(client.take() == "");
  SUBCASE("and is answered when it is loaded") {
    server.end_load();
    CHECK(server.answer(client).status == 200);
  }
  SUBCASE("again if it was evicted meanwhile") {
    server.evicts = true;
    server.end_load();
    server.settle_until([&] { return server.loads() == 2; });
    CHECK(client.take() == "");
    server.evicts = false;
    server.end_load();
    CHECK(server.answer(client).status == 200);
  }
  SUBCASE("and fails with the load, which the log says") {
    server.end_load("the test says no");
    const HttpAnswer answer = server.answer(client);
    CHECK(answer.status == 500);
    CHECK(answer.body == R"({"error":"the test says no"})");
    CHECK_FALSE(answer.has("Connection: close"));
    CHECK(ScriptedService::log_lines("request failed with 500: the test says no").size() == 1);
    CHECK(ScriptedService::log_lines(path + "\"").size() == 1);
  }
  SUBCASE("until request_timeout, to the nanosecond") {
    server.after(15s - 1ns);
    CHECK(client.take() == "");
    CHECK(server.waiting() == 1);
    server.after(1ms);
    const HttpAnswer answer = client.answer();
    CHECK(answer.status == 504);
    CHECK(contains(answer.body, "the model was not loaded in time (setting request_timeout)"));
    CHECK_FALSE(answer.has("Connection: close"));
    CHECK(server.waiting() == 0);
  }
  SUBCASE("until its client leaves") {
    client.leave();
    server.settle();
    CHECK(server.waiting() == 0);
    CHECK(server.open() == 0);
  }
}

TEST_CASE("http call: in the model's queue") {
  Server server(limit_time);
  server.publish("m");
  server.model("m")->set_replicas(0);
  Client client = server.connect();
  client.post(kInfer, kBody);
  server.settle();
  CHECK(server.model("m")->pending() == 1);
  SUBCASE("its deadline passes: it does not run, and the connection serves the next request") {
    server.after(15s + 1ms);
    const HttpAnswer answer = client.answer();
    CHECK(answer.status == 504);
    CHECK(contains(answer.body, "the request was not answered in time (setting request_timeout)"));
    CHECK_FALSE(answer.has("Connection: close"));
    CHECK(server.model("m")->pending() == 0);
    CHECK(server.failures("m") == 1);
    server.model("m")->set_replicas(1);
    client.post(kInfer, kBody);
    CHECK(server.answer(client).status == 200);
  }
  SUBCASE("its client leaves: it does not run") {
    client.leave();
    server.settle();
    CHECK(server.model("m")->pending() == 0);
    CHECK(server.failed("m", ErrorCode::kCancelled) == 1);
    CHECK(server.open() == 0);
  }
}

TEST_CASE("http call: a run that has begun goes on without its client, whose connection stays until the run ends") {
  Server server(limit_time);
  server.publish("m");
  ScriptedService::hold_runs();
  Client client = server.connect();
  client.post(kInfer, kBody);
  server.settle();
  ScriptedService::wait_for_run();
  SUBCASE("its deadline passes") {
    server.after(15s + 1ms);
    const HttpAnswer answer = client.answer();
    CHECK(answer.status == 504);
    CHECK(answer.has("Connection: close"));
    CHECK(client.ended());
    CHECK(server.failures("m") == 1);
  }
  SUBCASE("its client leaves") {
    client.leave();
    server.settle();
  }
  CHECK(server.open() == 1);
  ScriptedService::release_runs();
  server.settle_until([&] { return server.open() == 0; });
  CHECK(server.model("m")->statistics().totals().success == 0);
}

TEST_CASE("http call: a refusal that passes says when to try again") {
  Server server([](ServerConfig& config) { config.load_queue = 0; });
  Client client = server.connect();
  client.get("/v2/models/m");
  const HttpAnswer answer = server.answer(client);
  CHECK(answer.status == 429);
  CHECK(answer.has("Retry-After: 1"));
}

TEST_CASE("http call: while the server drains, each answer closes its connection") {
  Server server;
  Client client = server.connect();
  client.get("/v2");
  CHECK_FALSE(server.answer(client).has("Connection: close"));
  server.draining = true;
  client.get("/v2");
  CHECK(server.answer(client).has("Connection: close"));
  CHECK(client.ended());
}

TEST_CASE("http call: tokens are sent as events while the loop makes them") {
  Server server;
  server.publish("loops.explicit");
  Client client = server.connect();
  LoopCounts& loops = server.model("loops.explicit")->statistics().loops();
  SUBCASE("up to the last one, and the connection serves the next request") {
    client.post(kStream, R"({"prompt":[3,4,5],"INPUT__1":[5],"max_tokens":3})");
    std::string bytes;
    server.settle_until([&] { return contains(bytes += client.take(), "\r\n0\r\n\r\n"); });
    CHECK(contains(bytes, "text/event-stream"));
    CHECK(contains(bytes, "X-Accel-Buffering: no"));
    CHECK(contains(bytes, "\"finish_reason\":\"length\""));
    CHECK(server.model("loops.explicit")->statistics().totals().success == 1);
    client.get("/v2");
    CHECK(server.answer(client).status == 200);
  }
  SUBCASE("until the client leaves") {
    client.post(kStream, R"({"prompt":[3,4,5],"INPUT__1":[5],"max_tokens":1000000})");
    std::string bytes;
    server.settle_until([&] { return contains(bytes += client.take(), "data: "); });
    client.leave();
    server.settle_until([&] { return server.open() == 0; });
    CHECK(loops.running == 0);
    CHECK(server.failed("loops.explicit", ErrorCode::kCancelled) == 1);
  }
}
