// HttpCall: routes, access, limits, and requests that other threads execute. Its waits for models and their runs are in
// http_call_inference_test.cpp.
#include "server/api/http_call.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/server/api/http_service.h"

namespace sconce::server::api {

using namespace std::chrono_literals;
using sconce::TempFolder;
using sconce::test::BusyPool;
using sconce::test::HttpService;
using sconce::test::kBounded;
using sconce::test::kBoundedPath;
using sconce::test::kInferPath;
using sconce::test::kInferRequest;
using HttpAnswer = HttpService::Answer;
using Client = HttpService::Client;

namespace {

const std::string kInferToken = "infer-0123456789abcdef", kAdminToken = "admin-0123456789abcdef";

std::string bearer(const std::string& token) { return "Authorization: Bearer " + token + "\r\n"; }

// A service that needs tokens.
struct Guarded {
  explicit Guarded(bool http_admin = false)
      : service([&](ServerConfig& config) {
          config.token_file = folder.write("tokens", "infer " + kInferToken + "\nadmin " + kAdminToken + "\n").string();
          config.http_admin = http_admin;
        }) {}

  TempFolder folder;
  HttpService service;
};

bool has(const HttpAnswer& answer, std::string_view text) { return answer.body.find(text) != std::string::npos; }

}  // namespace

TEST_CASE("http call: routes") {
  HttpService service;
  service.publish("m");
  Client client = service.connect();
  SUBCASE("no such path: the connection stays") {
    for (const char* path : {"/nope", "/v2/models/m/nope", "/v2/admin/models/m/weights"}) {
      const HttpAnswer answer = service.get(client, path);
      CHECK(answer.status == 404);
      CHECK(answer.body == R"({"error":"Not Found"})");
      CHECK_FALSE(answer.has("Connection: close"));
    }
    CHECK(service.answered(404) == 3);
    CHECK(service.telemetry->counters[0].responses[http::ConnectionCounters::kNoRoute][6] == 3);
  }
  SUBCASE("no such method: the answer names those that there are") {
    const HttpAnswer answer = service.post(client, "/v2/models/m", "{}");
    CHECK(answer.status == 405);
    CHECK(answer.has("Allow: GET, HEAD\r\n"));
    CHECK_FALSE(answer.has("Connection: close"));
  }
  SUBCASE("a body that nobody will read is not read") {
    client.send("POST /nope HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n");
    const HttpAnswer answer = service.answer(client);
    CHECK(answer.status == 404);
    CHECK(answer.has("Connection: close"));
  }
  SUBCASE("an ambiguous target") {
    const HttpAnswer answer = service.get(client, "/v2//models");
    CHECK(answer.status == 400);
    CHECK(has(answer, "empty"));
    CHECK(service.get(client, "/v2/models/m").status == 200);  // the next target is not taken for the same
  }
  SUBCASE("a repeated target, and another method of it") {
    for (int i = 0; i < 2; ++i) CHECK(service.get(client, "/v2/models/m/ready").status == 200);
    CHECK(service.post(client, "/v2/models/m/ready", "").status == 405);
    CHECK(service.get(client, "/v2/models/m/ready").status == 200);
  }
  SUBCASE("a HEAD request has the header only") {
    client.send("HEAD /v2/models/m HTTP/1.1\r\nHost: x\r\n\r\n");
    service.settle();
    const std::string answer = client.take();
    CHECK(answer.starts_with("HTTP/1.1 200 OK\r\n"));
    CHECK(answer.ends_with("\r\n\r\n"));
  }
  SUBCASE("a set in the path is for routes that distinguish sets") {
    const HttpAnswer answer = service.get(client, "/v2/models/m@blue/config");
    CHECK(answer.status == 404);
    CHECK(has(answer, "'m@blue' is not found"));
    CHECK(service.get(client, "/v2/models/m@blue").status == 404);  // the model has no sets
  }
}

TEST_CASE("http call: control routes need http_admin on the public listener, and are refused before their bodies") {
  bool allowed = false;
  SUBCASE("not allowed") {}
  SUBCASE("allowed") { allowed = true; }
  HttpService service([&](ServerConfig& config) { config.http_admin = allowed; });
  Client client = service.connect();
  const std::string head = "POST /v2/repository/models/other/load HTTP/1.1\r\nHost: x\r\nContent-Length: ";
  client.send(head + "60000\r\n\r\n");
  if (!allowed) {
    const HttpAnswer answer = service.answer(client);
    CHECK(answer.status == 403);
    CHECK(has(answer, "this is for the administration listener (settings admin and http_admin)"));
    CHECK(answer.has("Connection: close"));
    Client other = service.connect();
    const HttpAnswer small = service.post(other, "/v2/repository/models/other/load", "{}");
    CHECK(small.status == 403);
    CHECK_FALSE(small.has("Connection: close"));
    CHECK(service.get(other, "/v2/logging").status == 403);
  } else {
    CHECK(service.look(client).status == 0);
    Client other = service.connect();
    CHECK(service.get(other, "/v2/logging").status == 200);
  }
}

TEST_CASE("http call: a request without a sufficient token is refused before it does anything") {
  Guarded guarded;
  HttpService& service = guarded.service;
  const auto ask = [&](const std::string& fields) {
    Client client = service.connect();
    return service.post(client, kInferPath, kInferRequest, fields);
  };
  const HttpAnswer none = ask({});
  CHECK(none.status == 401);
  CHECK(none.has("WWW-Authenticate: Bearer realm=\"sconce\"\r\n"));
  CHECK(none.has("Connection: close"));
  const HttpAnswer other = ask(bearer("infer-0123456789abcdeX"));
  CHECK(other.status == 403);
  CHECK_FALSE(other.has("WWW-Authenticate"));
  CHECK(other.has("Connection: close"));
  CHECK(ask(bearer(kAdminToken)).status == 403);
  CHECK(service.waiting() == 0);
  CHECK(service.loads() == 0);
  service.publish("m");
  CHECK(ask(bearer(kInferToken)).status == 200);
  Client probe = service.connect();
  CHECK(service.get(probe, "/v2/health/live").status == 200);
  CHECK(service.get(probe, "/nope").status == 401);  // does not say which paths there are
}

TEST_CASE("http call: administration needs its own token, on both listeners") {
  Guarded guarded(true);
  HttpService& service = guarded.service;
  for (const http::Listeners listener : {http::kPublic, http::kAdmin}) {
    for (const auto& [token, status] : {std::pair(kInferToken, 403), std::pair(kAdminToken, 200)}) {
      Client client = service.connect(listener);
      CHECK(service.get(client, "/v2/logging", bearer(token)).status == status);
    }
  }
  Client client = service.connect(http::kAdmin);
  CHECK(service.get(client, "/v2/admin/operations", bearer(kInferToken)).status == 403);
  Client admin = service.connect(http::kAdmin);
  CHECK(service.get(admin, "/v2/admin/operations", bearer(kAdminToken)).status == 200);
}

TEST_CASE("http call: a revoked token is refused on the administration listener at once") {
  Guarded guarded;
  Client before = guarded.service.connect(http::kAdmin);
  CHECK(guarded.service.get(before, "/v2/admin/operations", bearer(kAdminToken)).status == 200);
  guarded.folder.write("tokens",
                       "infer " + kInferToken +
                           "\nadmin another-0123456789abcdef\n# longer than before, so that its size differs too\n");
  CHECK(guarded.service.get(before, "/v2/admin/operations", bearer(kAdminToken)).status == 403);
}

TEST_CASE("http call: limits of bodies") {
  HttpService service([](ServerConfig& config) { config.max_body_bytes = 1 << 20; });
  Client client = service.connect();
  const auto declare = [&](const std::string& path, size_t bytes, const std::string& fields = {}) {
    client.send("POST " + path + " HTTP/1.1\r\nHost: x\r\n" + fields + "Content-Length: " + std::to_string(bytes) +
                "\r\n\r\n");
    return service.look(client);
  };
  SUBCASE("of text: 64 KiB") {
    CHECK(declare("/v2/repository/index", 64 * 1024).status == 0);
    client = service.connect();
    const HttpAnswer answer = declare("/v2/repository/index", 64 * 1024 + 1);
    CHECK(answer.status == 413);
    CHECK(has(answer, "larger than 65536 bytes, the most that this route takes"));
    CHECK(answer.has("Connection: close"));
  }
  SUBCASE("of inputs: what the model can need") {
    service.publish(kBounded);
    const uint64_t most = service.model(kBounded)->most_body_bytes();
    REQUIRE(most < static_cast<uint64_t>(service.config.max_body_bytes));
    CHECK(declare(kBoundedPath, most).status == 0);
    client = service.connect();
    const HttpAnswer answer = declare(kBoundedPath, most + 1);
    CHECK(answer.status == 413);
    CHECK(has(answer, "larger than " + std::to_string(most) + " bytes, more than the model's inputs can need"));
  }
  SUBCASE("of inputs of a model that is not loaded: max_body_bytes") {
    CHECK(declare(kInferPath, static_cast<size_t>(service.config.max_body_bytes)).status == 0);
    client = service.connect();
    const HttpAnswer answer = declare(kInferPath, static_cast<size_t>(service.config.max_body_bytes) + 1);
    CHECK(answer.status == 413);
    CHECK(has(answer, "larger than max_body_bytes"));
  }
  SUBCASE("a missing model is told before the body is read") {
    const HttpAnswer answer = declare("/v2/models/other/infer", 1000);
    CHECK(answer.status == 404);
    CHECK(answer.has("Connection: close"));
  }
  SUBCASE("a chunked body, which has no length") {
    client.send("POST /v2/repository/index HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    CHECK(service.look(client).status == 0);
    client.send("10001\r\n" + std::string(0x10001, ' ') + "\r\n0\r\n\r\n");
    CHECK(service.answer(client).status == 413);
  }
  SUBCASE("a coding is for inference only") {
    const HttpAnswer answer = declare("/v2/repository/index", 100, "Content-Encoding: gzip\r\n");
    CHECK(answer.status == 415);
    CHECK(answer.has("Connection: close"));
  }
}

TEST_CASE("http call: limits of bodies on the administration listener") {
  HttpService service;
  Client client = service.connect(http::kAdmin);
  const auto declare = [&](const std::string& path, size_t bytes, const std::string& fields) {
    client.send("POST " + path + " HTTP/1.1\r\nHost: x\r\n" + fields + "Content-Length: " + std::to_string(bytes) +
                "\r\n\r\n");
    return service.look(client);
  };
  const std::string json = "Content-Type: application/json\r\n";
  SUBCASE("text") {
    CHECK(declare("/v2/admin/models/m/weights/commit", 64 * 1024, json).status == 0);
    client = service.connect(http::kAdmin);
    const HttpAnswer answer = declare("/v2/admin/models/m/weights/commit", 64 * 1024 + 1, json);
    CHECK(answer.status == 413);
    CHECK(answer.has("Connection: close"));
  }
  SUBCASE("names of tensors") {
    CHECK(declare("/v2/admin/models/m/weights", 64 << 20, json).status == 0);
    client = service.connect(http::kAdmin);
    CHECK(declare("/v2/admin/models/m/weights", (64 << 20) + 1, json).status == 413);
  }
  SUBCASE("weights of another form") {
    const HttpAnswer answer = declare("/v2/admin/models/m/weights", 100, "Content-Type: text/plain\r\n");
    CHECK(answer.status == 415);
    CHECK(has(answer, "Content-Type must be application/octet-stream"));
  }
  SUBCASE("a coding") {
    CHECK(declare("/v2/admin/models/m/weights", 100, json + "Content-Encoding: gzip\r\n").status == 415);
  }
  SUBCASE("inference has the limits of its model") {
    service.publish(kBounded);
    CHECK(declare(kBoundedPath, service.model(kBounded)->most_body_bytes() + 1, {}).status == 413);
  }
}

TEST_CASE("http call: an upload below a path whose route has no sets is refused") {
  HttpService service([](ServerConfig& config) { config.set_model("m.sets=2", "the test"); });
  service.publish("m");
  Client client = service.connect(http::kAdmin);
  const std::string stream = "Content-Type: application/octet-stream\r\nContent-Length: 100\r\n\r\n";
  client.send("POST /v2/admin/models/m@blue/weights HTTP/1.1\r\nHost: x\r\n" + stream + std::string(100, 'x'));
  const HttpAnswer answer = service.answer(client);
  CHECK(answer.status == 404);
  CHECK(has(answer, "'m@blue' is not found"));
}

TEST_CASE("http call: an admin thread's answer, and its error") {
  HttpService service;
  service.publish("m");
  Client client = service.connect(http::kAdmin);
  const HttpAnswer weights = service.get(client, "/v2/admin/models/m/weights");
  CHECK(weights.status == 200);
  CHECK(has(weights, "\"active\""));
  CHECK_FALSE(weights.has("Connection: close"));
  CHECK(service.get(client, "/v2/admin/models/other/weights").status == 404);
  CHECK(service.get(client, "/v2/admin/models/m@blue/weights").status == 404);
  CHECK(service.post(client, "/v2/admin/models/m/weights/commit", "{}", "Content-Type: application/json\r\n").status ==
        400);
  CHECK(service.get(client, "/v2/admin/models/m/weights").status == 200);
}

TEST_CASE("http call: an admin task waits for its model without a limit, and holds it") {
  HttpService service([](ServerConfig& config) { config.set_model("*.request_timeout=15s", "the test"); });
  Client client = service.connect(http::kAdmin);
  client.get("/v2/admin/models/m/weights");
  service.settle();
  service.wait_for_load();
  SUBCASE("loaded") {
    service.after(1h);
    CHECK(service.look(client).status == 0);
    service.end_load();
    CHECK(service.answer(client).status == 200);
    CHECK(service.model("m")->uses()->in_use() == false);
  }
  SUBCASE("evicted before it is used: it waits again") {
    service.evicts = true;
    service.end_load();
    while (service.loads() < 2) service.settle();
    service.evicts = false;
    service.end_load();
    CHECK(service.answer(client).status == 200);
  }
  SUBCASE("not loaded") {
    service.end_load("the test says no");
    const HttpAnswer answer = service.answer(client);
    CHECK(answer.status == 500);
    CHECK(has(answer, "the test says no"));
  }
}

TEST_CASE("http call: a task holds its model until it ends") {
  HttpService service([](ServerConfig& config) { config.set_model("loops.explicit.sets=2", "the test"); });
  service.publish("loops.explicit");
  const auto held = [&] { return service.model("loops.explicit")->uses()->in_use(); };
  Client client = service.connect(http::kAdmin);
  const std::string no_weights("\x02\0\0\0\0\0\0\0{}", 10);  // all are those of the active set
  client.send(
      "POST /v2/admin/models/loops.explicit/sets/blue?mode=partial HTTP/1.1\r\nHost: x\r\n"
      "Content-Type: application/octet-stream\r\nContent-Length: 10\r\n\r\n");
  CHECK(service.look(client).status == 0);
  CHECK(held());
  client.send(no_weights);
  const HttpAnswer answer = service.answer(client);
  CHECK(answer.status == 200);
  CHECK_FALSE(answer.has("Connection: close"));
  CHECK_FALSE(held());
  CHECK(service.get(client, "/v2/admin/models/loops.explicit/sets/blue").status == 200);
}

TEST_CASE("http call: the loader's work, and its error") {
  HttpService service([](ServerConfig& config) { config.http_admin = true; });
  service.control->start();
  Client client = service.connect();
  const HttpAnswer loaded = service.post(client, "/v2/repository/models/m/load", "");
  CHECK(loaded.status == 200);
  CHECK(service.model("m"));
  CHECK_FALSE(loaded.has("Connection: close"));
  CHECK(service.post(client, "/v2/repository/models/other/load", "").status == 404);
  CHECK(service.post(client, "/v2/repository/models/m@blue/load", "").status == 404);
  CHECK(service.post(client, "/v2/repository/models/m/load", "nonsense").status == 400);
  CHECK(service.post(client, "/v2/repository/models/m/unload", "").status == 200);
}

TEST_CASE("http call: a document about many models is written on another thread") {
  HttpService service([](ServerConfig& config) {
    for (int i = 0; i < 201; ++i) {
      const std::filesystem::path folder = std::filesystem::path(config.serve[0]) / ("x" + std::to_string(i)) / "1";
      std::filesystem::create_directories(folder);
      std::ofstream(folder / "model.pt2") << "no package";
    }
  });
  Client client = service.connect();
  BusyPool busy(service.admission->heavy_work);
  client.get("/v2/models");
  CHECK(service.look(client).status == 0);
  busy.let_go();
  const HttpAnswer names = service.answer(client);
  CHECK(names.status == 200);
  CHECK(has(names, "\"x200\""));
  CHECK(service.post(client, "/v2/repository/index", "[]").status == 400);  // its error comes back too
  CHECK(service.get(client, "/v2/models/m/ready").status == 200);
}

TEST_CASE("http call: an event stream sends what is new, and ends with the server") {
  HttpService service;
  Client client = service.connect(http::kAdmin);
  client.get("/v2/admin/live");
  service.settle();
  const std::string first = client.take();
  CHECK(first.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream"));
  CHECK(first.find("X-Accel-Buffering: no\r\n") != std::string::npos);
  CHECK(first.find("Connection: close\r\n") != std::string::npos);
  CHECK(first.find("data: ") != std::string::npos);
  service.settle();
  CHECK(client.take().empty());
  service.io.end_clients(true);
  service.settle();
  CHECK(client.take().empty());  // it does not wait for its client
  service.io.close_idle();
  service.settle();
  const std::string last = client.take();
  CHECK(last.find(": the server is ending\n\n") != std::string::npos);
  CHECK(last.ends_with("0\r\n\r\n"));
  CHECK(client.ended());
}

TEST_CASE("http call: ids") {
  HttpService service;
  Client client = service.connect();
  CHECK_FALSE(service.get(client, "/v2/health/live").has("X-Request-Id"));
  CHECK(service.get(client, "/v2/health/live", "X-Request-Id: an-id\r\n").has("X-Request-Id: an-id\r\n"));
  CHECK_FALSE(service.get(client, "/v2/health/live").has("X-Request-Id"));
  CHECK(service.get(client, "/nope").has("X-Request-Id: "));  // an error always has one
  // A request that does not arrive in time has no id of its own, and not the last one's either.
  service.get(client, "/v2/health/live", "X-Request-Id: an-id\r\n");
  client.send("GET /v2/health");
  service.settle();
  service.after(service.config.header_timeout + 1s);
  const HttpAnswer late = service.look(client);
  CHECK(late.status == 408);
  CHECK_FALSE(late.has("an-id"));
}

TEST_CASE("http call: the access log") {
  HttpService service([](ServerConfig& config) { config.access_log = true; });
  Client client = service.connect();
  const HttpAnswer answer = service.get(client, "/v2/models/other?x=%0a\x01", "X-Request-Id: an-id\r\n");
  CHECK(answer.status >= 400);
  client = service.connect();
  service.get(client, "/v2/health/live", "X-Request-Id: an-id\r\n");
  const std::vector<std::string> lines = HttpService::log_lines("GET /v2/health/live");
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].find("\"status\":200") != std::string::npos);
  CHECK(lines[0].find("an-id") != std::string::npos);
  CHECK(lines[0].find("192.0.2.7:50000") != std::string::npos);
}

TEST_CASE("http call: a server that drains, and a connection that is old, close after the answer") {
  HttpService service([](ServerConfig& config) { config.http_max_connection_age = 1h; });
  Client client = service.connect();
  CHECK_FALSE(service.get(client, "/v2/health/live").has("Connection: close"));
  SUBCASE("draining") {
    service.draining = true;
    CHECK(service.get(client, "/v2/health/live").has("Connection: close"));
  }
  SUBCASE("old") {
    // The age counts from the system's time of its beginning.
    HttpService::pass_unseen(59min);
    CHECK_FALSE(service.get(client, "/v2/health/live").has("Connection: close"));
    HttpService::pass_unseen(8min);
    CHECK(service.get(client, "/v2/health/live").has("Connection: close"));
  }
  SUBCASE("HTTP/1.0") {
    client.send("GET /v2/health/live HTTP/1.0\r\n\r\n");
    CHECK(service.answer(client).has("Connection: close"));
  }
}

TEST_CASE("http call: a foreign name in Host is refused if nothing but the address restricts access") {
  Guarded guarded;
  HttpService open;
  for (HttpService* service : {&open, &guarded.service}) {
    service->admission->checks_host = http::kPublic;
    Client client = service->connect();
    client.send("GET /v2/health/live HTTP/1.1\r\nHost: evil.example\r\n\r\n");
    const HttpAnswer answer = service->answer(client);
    CHECK(answer.status == (service == &open ? 403 : 200));
    CHECK(answer.has("Connection: close") == (service == &open));
    Client own = service->connect();
    for (int i = 0; i < 2; ++i) {
      own.send("GET /v2/health/live HTTP/1.1\r\nHost: localhost:8000\r\n\r\n");
      CHECK(service->answer(own).status == 200);
    }
    own.send("GET /v2/health/live HTTP/1.1\r\nHost: evil.example\r\n\r\n");
    CHECK(service->answer(own).status == (service == &open ? 403 : 200));
  }
}

TEST_CASE("http call: pages of other origins") {
  HttpService service([](ServerConfig& config) {
    config.http_cors_origins = {"https://app.example"};
    config.http_admin = true;
  });
  service.publish("m");
  Client client = service.connect();
  const std::string app = "Origin: https://app.example\r\n", other = "Origin: https://evil.example\r\n";
  SUBCASE("an allowed one may read answers of models") {
    const HttpAnswer answer = service.post(client, kInferPath, kInferRequest, app);
    CHECK(answer.status == 200);
    CHECK(answer.has("Access-Control-Allow-Origin: https://app.example\r\n"));
    CHECK_FALSE(service.post(client, kInferPath, kInferRequest, other).has("Access-Control-Allow-Origin"));
    CHECK_FALSE(service.get(client, "/v2/logging", app).has("Access-Control-Allow-Origin"));
  }
  SUBCASE("others may change nothing without a token") {
    CHECK(service.post(client, "/v2/logging", "{}").status == 200);
    Client page = service.connect();
    CHECK(service.post(page, "/v2/logging", "{}", other).status == 403);
    Client own = service.connect();
    CHECK(service.post(own, "/v2/logging", "{}", "Origin: http://x\r\n").status == 403);  // x is no name of this server
  }
  SUBCASE("a preflight") {
    const auto ask = [&](const std::string& origin, const std::string& path, const std::string& method) {
      client.send("OPTIONS " + path + " HTTP/1.1\r\nHost: x\r\n" + origin + "Access-Control-Request-Method: " + method +
                  "\r\n\r\n");
      return service.answer(client);
    };
    const HttpAnswer answer = ask(app, kInferPath, "POST");
    CHECK(answer.status == 204);
    CHECK(answer.has("Access-Control-Allow-Methods: POST\r\n"));
    CHECK(ask(app, "/v2/models/m", "HEAD").has("Access-Control-Allow-Methods: GET, HEAD\r\n"));
    CHECK(ask(app, "/v2/logging", "POST").status == 405);
    CHECK(ask(app, kInferPath, "PUT").status == 405);
    CHECK(ask(other, kInferPath, "POST").status == 403);
  }
}

}  // namespace sconce::server::api
