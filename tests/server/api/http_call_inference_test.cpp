// HttpCall: requests that wait for a model, run it, and stream its tokens. Loads, queues and runs end when the test
// says so.
#include <doctest/doctest.h>

#include <string>
#include <thread>
#include <vector>

#include "server/api/http_call.h"
#include "tests/server/api/http_service.h"

namespace sconce::server::api {

using namespace std::chrono_literals;
using sconce::test::BusyPool;
using sconce::test::HttpService;
using sconce::test::kBounded;
using sconce::test::kBoundedPath;
using sconce::test::kBoundedRequest;
using sconce::test::kInferPath;
using sconce::test::kInferRequest;
using HttpAnswer = HttpService::Answer;
using Client = HttpService::Client;

namespace {

void limit_time(ServerConfig& config) { config.set_model("*.request_timeout=15s", "the test"); }

bool has(const HttpAnswer& answer, std::string_view text) { return answer.body.find(text) != std::string::npos; }

const std::string kStreamPath = "/v2/models/loops.explicit/generate_stream";

std::string prompt(int most_tokens) {
  return R"({"prompt": [3, 4, 5], "INPUT__1": [5], "max_tokens": )" + std::to_string(most_tokens) + "}";
}

size_t count(std::string_view text, std::string_view of) {
  size_t found = 0;
  for (size_t at = text.find(of); at != std::string_view::npos; at = text.find(of, at + 1)) ++found;
  return found;
}

// All bytes of an answer to their end.
std::string take_all(HttpService& service, Client& client) {
  std::string text;
  while (!text.ends_with("\r\n0\r\n\r\n")) {
    service.settle();
    const std::string more = client.take();
    text += more;
    if (more.empty()) std::this_thread::yield();
  }
  return text;
}

// request: to the model "m".
void check_wait(const std::string& request) {
  HttpService service(limit_time);
  Client client = service.connect();
  client.send(request);
  service.settle();
  service.wait_for_load();
  CHECK(service.look(client).status == 0);
  CHECK(service.waiting() == 1);
  SUBCASE("until it is loaded") {
    service.end_load();
    const HttpAnswer answer = service.answer(client);
    CHECK(answer.status == 200);
    CHECK_FALSE(answer.has("Connection: close"));
    CHECK(service.get(client, "/v2/models/m").status == 200);
  }
  SUBCASE("again if it was evicted meanwhile") {
    service.evicts = true;
    service.end_load();
    while (service.loads() < 2) service.settle();
    CHECK(service.look(client).status == 0);
    service.evicts = false;
    service.end_load();
    CHECK(service.answer(client).status == 200);
  }
  SUBCASE("until the load fails") {
    service.end_load("the test says no");
    const HttpAnswer answer = service.answer(client);
    CHECK(answer.status == 500);
    CHECK(has(answer, "the test says no"));
    CHECK_FALSE(answer.has("Connection: close"));
    CHECK(HttpService::log_lines("request failed with 500: the test says no").size() == 1);
  }
  SUBCASE("until request_timeout, to the nanosecond") {
    service.after(15s - 1ns);
    CHECK(service.look(client).status == 0);
    service.after(1ms);
    const HttpAnswer answer = service.look(client);
    CHECK(answer.status == 504);
    CHECK(has(answer, "the model was not loaded in time (setting request_timeout)"));
    CHECK_FALSE(answer.has("Connection: close"));  // nothing uses its memory
    CHECK(service.waiting() == 0);
  }
  SUBCASE("until its client leaves") {
    client.leave();
    service.settle();
    CHECK(service.waiting() == 0);
    CHECK(service.connections.of(http::kPublic) == 0);
  }
}

}  // namespace

TEST_CASE("http call: a model answers, one request of a connection after the other") {
  HttpService service;
  service.publish("m");
  Client client = service.connect();
  for (int i = 0; i < 3; ++i) {
    const HttpAnswer answer = service.post(client, kInferPath, kInferRequest);
    CHECK(answer.status == 200);
    CHECK(has(answer, "14"));
    CHECK(answer.has("Sconce-Generation: 1\r\n"));
    CHECK_FALSE(answer.has("Server-Timing"));
    CHECK_FALSE(answer.has("Connection: close"));
  }
  CHECK(service.model("m")->statistics().totals().success == 3);
  CHECK_FALSE(service.model("m")->uses()->in_use());
  CHECK(service.answered(200) == 3);
  CHECK(service.telemetry->counters[0].bodies_in == 3 * kInferRequest.size());
  CHECK(service.telemetry->counters[0].bodies_out == 3 * kInferRequest.size());
}

TEST_CASE("http call: Server-Timing has the times of a run, and no error has it") {
  HttpService service([](ServerConfig& config) { config.server_timing = true; });
  service.publish("m");
  Client client = service.connect();
  const HttpAnswer answer = service.post(client, kInferPath, kInferRequest);
  for (const char* part :
       {"Server-Timing: queue;dur=", ", input;dur=", ", compute;dur=", ", output;dur=", ", total;dur="})
    CHECK(answer.has(part));
  CHECK_FALSE(service.post(client, kInferPath, "{}").has("Server-Timing"));
  CHECK_FALSE(service.get(client, "/v2/models/m").has("Server-Timing"));
}

TEST_CASE("http call: an error of the request keeps the connection") {
  HttpService service;
  service.publish("m");
  Client client = service.connect();
  for (const std::string body : {"{}", "nonsense", R"({"inputs": []})"}) {
    const HttpAnswer answer = service.post(client, kInferPath, body);
    CHECK(answer.status == 400);
    CHECK_FALSE(answer.has("Connection: close"));
  }
  const HttpAnswer version = service.post(client, "/v2/models/m/versions/9/infer", kInferRequest);
  CHECK(version.status == 404);
  CHECK(service.post(client, kInferPath, kInferRequest).status == 200);
}

TEST_CASE("http call: the form of a call's tensors") {
  HttpService service;
  service.publish("m");
  Client client = service.connect();
  const std::string path = "/v1/models/m:call", body = R"({"args": [[[1, 2, 3, 4]]]})";
  CHECK(has(service.post(client, path, body), "14"));
  CHECK(has(service.post(client, path + "?tensors=list", body), "14"));
  CHECK(has(service.post(client, path + "?tensors=base64", body), "base64"));
  const HttpAnswer answer = service.post(client, path + "?tensors=hex", body);
  CHECK(answer.status == 400);
  CHECK(has(answer, "parameter tensors must be list or base64, got 'hex'"));
}

TEST_CASE("http call: inference waits for a model that is loaded on demand") {
  check_wait("POST " + kInferPath + " HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(kInferRequest.size()) +
             "\r\n\r\n" + kInferRequest);
}

TEST_CASE("http call: a document waits for a model that is loaded on demand") {
  check_wait("GET /v2/models/m HTTP/1.1\r\nHost: x\r\n\r\n");
}

TEST_CASE("http call: a client that leaves as the load ends") {
  HttpService service(limit_time);
  Client client = service.connect();
  client.post(kInferPath, kInferRequest);
  service.settle();
  service.wait_for_load();
  service.end_load();
  while (service.waiting() > 0) std::this_thread::yield();
  client.leave();
  service.settle();
  service.after(1s);
  CHECK(service.connections.of(http::kPublic) == 0);
}

TEST_CASE("http call: a body that waited for its model is compared with the model's limit") {
  HttpService service;
  service.publish(kBounded);
  const uint64_t most = service.model(kBounded)->most_body_bytes();
  REQUIRE(most > 64 * 1024);
  service.evict(kBounded);
  Client client = service.connect();
  SUBCASE("too large") {
    service.send_post(client, kBoundedPath, kBoundedRequest + std::string(most + 1 - kBoundedRequest.size(), ' '));
    service.end_load();
    const HttpAnswer answer = service.answer(client);
    CHECK(answer.status == 413);
    CHECK(has(answer, "more than the model's inputs can need"));
  }
  SUBCASE("just right") {
    service.send_post(client, kBoundedPath, kBoundedRequest + std::string(most - kBoundedRequest.size(), ' '));
    service.end_load();
    CHECK(service.answer(client).status == 200);
  }
}

TEST_CASE("http call: a line of requests for a load that is too long") {
  HttpService service([](ServerConfig& config) { config.load_queue = 1; });
  Client first = service.connect(), second = service.connect();
  first.post(kInferPath, kInferRequest);
  service.settle();
  const HttpAnswer answer = service.post(second, kInferPath, kInferRequest);
  CHECK(answer.status == 429);
  CHECK(answer.has("Retry-After: 1\r\n"));
  CHECK_FALSE(answer.has("Connection: close"));
  service.end_load();
  CHECK(service.answer(first).status == 200);
  CHECK_FALSE(service.get(second, "/nope").has("Retry-After"));
}

TEST_CASE("http call: in the model's queue") {
  HttpService service(limit_time);
  service.publish("m");
  service.model("m")->set_replicas(0);
  Client client = service.connect();
  client.post(kInferPath, kInferRequest);
  CHECK(service.look(client).status == 0);
  CHECK(service.model("m")->pending() == 1);
  SUBCASE("a replica runs it") {
    service.model("m")->set_replicas(1);
    CHECK(service.answer(client).status == 200);
  }
  SUBCASE("its deadline passes: it does not run, and the connection stays") {
    service.after(15s + 1ms);
    const HttpAnswer answer = service.look(client);
    CHECK(answer.status == 504);
    CHECK(has(answer, "the request was not answered in time (setting request_timeout)"));
    CHECK_FALSE(answer.has("Connection: close"));
    CHECK(service.model("m")->pending() == 0);
    CHECK(service.failed("m", ErrorCode::kDeadlineExceeded) == 1);
    service.model("m")->set_replicas(1);
    CHECK(service.post(client, kInferPath, kInferRequest).status == 200);
  }
  SUBCASE("its client leaves: it does not run") {
    client.leave();
    service.settle();
    CHECK(service.model("m")->pending() == 0);
    CHECK(service.failed("m", ErrorCode::kCancelled) == 1);
    CHECK(service.connections.of(http::kPublic) == 0);
  }
}

TEST_CASE("http call: a run that has begun") {
  HttpService service(limit_time);
  service.publish("m");
  HttpService::hold_runs();
  Client client = service.connect();
  client.post(kInferPath, kInferRequest);
  service.settle();
  HttpService::wait_for_run();
  SUBCASE("its deadline passes: the connection closes, and its memory stays until the run ends") {
    service.after(15s + 1ms);
    const HttpAnswer answer = service.look(client);
    CHECK(answer.status == 504);
    CHECK(answer.has("Connection: close"));
    CHECK(service.failed("m", ErrorCode::kDeadlineExceeded) == 1);
    CHECK(service.telemetry->counters[0].closed == 0);  // the run still uses it
    HttpService::release_runs();
    while (service.telemetry->counters[0].closed == 0) service.settle();
  }
  SUBCASE("its client leaves: its memory stays until the run ends") {
    client.leave();
    service.settle();
    CHECK(service.telemetry->counters[0].closed == 0);
    HttpService::release_runs();
    while (service.telemetry->counters[0].closed == 0) service.settle();
    CHECK(service.failed("m", ErrorCode::kCancelled) == 0);  // it could not be cancelled
  }
  SUBCASE("its client sends no more: it is answered") {
    client.finish();
    service.settle();
    HttpService::release_runs();
    CHECK(service.answer(client).status == 200);
  }
}

TEST_CASE("http call: a run that fails") {
  HttpService service;
  service.publish("m");
  Client client = service.connect();
  std::string body = kInferRequest;
  body.replace(body.find("[1, 2"), 2, "[-1e30");
  const HttpAnswer answer = service.post(client, kInferPath, body);
  CHECK(answer.status == 500);
  CHECK_FALSE(answer.has("Connection: close"));
  CHECK(service.model("m")->statistics().totals().failures == 1);
  CHECK(HttpService::log_lines("request failed with 500: ").size() == 1);
  CHECK(service.post(client, kInferPath, kInferRequest).status == 200);
}

TEST_CASE("http call: a long body is decoded on another thread, whose error comes back") {
  HttpService service;
  service.publish("m");
  service.model("m")->set_replicas(0);
  Client client = service.connect();
  const std::string blanks(300 * 1024, ' ');
  BusyPool busy(service.admission->heavy_work);
  service.send_post(client, kInferPath, blanks + kInferRequest);
  service.settle();
  REQUIRE(service.model("m")->pending() == 0);
  busy.let_go();
  while (service.model("m")->pending() == 0) service.settle();
  service.model("m")->set_replicas(1);
  const HttpAnswer answer = service.answer(client);
  CHECK(answer.status == 200);
  CHECK(has(answer, "14"));
  service.send_post(client, kInferPath, blanks + "nonsense");
  CHECK(service.answer(client).status == 400);
  CHECK(service.post(client, kInferPath, kInferRequest).status == 200);
}

TEST_CASE("http call: a long answer is encoded on another thread") {
  HttpService service;
  service.publish("m");
  Client client = service.connect();
  constexpr int kRows = 9000;
  std::string body = R"({"inputs": [{"name": "INPUT__0", "shape": [9000, 4], "datatype": "FP32", "data": [1, 2, 3, 4)";
  for (int i = 1; i < kRows; ++i) body += ", 1, 2, 3, 4";
  body += "]}]}";
  BusyPool busy(service.admission->heavy_work);
  service.send_post(client, kInferPath, body);
  while (service.model("m")->statistics().totals().executions == 0) service.settle();
  service.settle();
  REQUIRE(client.take().empty());
  busy.let_go();
  std::string text;
  while (text.find("]}]}") == std::string::npos) {
    service.settle();
    text += client.take();
    std::this_thread::yield();
  }
  CHECK(text.starts_with("HTTP/1.1 200 OK\r\n"));
  CHECK(count(text, "14") >= kRows);
}

TEST_CASE("http call: answers of infer are compressed for clients that accept it") {
  HttpService service([](ServerConfig& config) { config.compress_above = 10; });
  service.publish("m");
  Client client = service.connect();
  const std::string gzip = "Accept-Encoding: gzip\r\n";
  CHECK(service.post(client, kInferPath, kInferRequest, gzip).has("Content-Encoding: gzip\r\n"));
  CHECK_FALSE(service.post(client, kInferPath, kInferRequest).has("Content-Encoding"));
  CHECK_FALSE(service.post(client, "/v1/models/m:call", R"({"args": [[[1, 2, 3, 4]]]})", gzip).has("Content-Encoding"));
  CHECK_FALSE(service.get(client, "/v2/models/m", gzip).has("Content-Encoding"));
}

TEST_CASE("http call: a stream is answered token by token") {
  HttpService service;
  service.publish("loops.explicit");
  Client client = service.connect();
  client.post(kStreamPath, prompt(5));
  const std::string text = take_all(service, client);
  CHECK(text.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream"));
  CHECK(text.find("X-Accel-Buffering: no\r\n") != std::string::npos);
  CHECK(count(text, "\"step\":") == 5);
  CHECK(text.find("\"finish_reason\":\"length\"") != std::string::npos);
  CHECK(service.model("loops.explicit")->statistics().totals().success == 1);
  CHECK(service.get(client, "/v2/health/live").status == 200);  // the connection stays
}

TEST_CASE("http call: a stream over HTTP/1.0 ends with its connection") {
  HttpService service;
  service.publish("loops.explicit");
  Client client = service.connect();
  client.send("POST " + kStreamPath + " HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: " +
              std::to_string(prompt(3).size()) + "\r\n\r\n" + prompt(3));
  std::string text;
  while (text.find("finish_reason") == std::string::npos) {
    service.settle();
    text += client.take();
  }
  CHECK(text.find("Transfer-Encoding") == std::string::npos);
  CHECK(count(text, "\"step\":") == 3);
  CHECK(client.ended());
}

TEST_CASE("http call: a client that leaves its stream ends the loop") {
  HttpService service;
  service.publish("loops.explicit");
  Client client = service.connect();
  client.post(kStreamPath, prompt(1000000));
  std::string text;
  while (text.find("\"step\":") == std::string::npos) {
    service.settle();
    text += client.take();
  }
  client.leave();
  while (service.telemetry->counters[0].closed == 0) {
    service.settle();
    service.after(1s);
  }
  CHECK(service.failed("loops.explicit", ErrorCode::kCancelled) == 1);
  CHECK(service.model("loops.explicit")->statistics().totals().success == 0);
}

TEST_CASE("http call: a loop whose answer is no stream") {
  HttpService service;
  service.publish("loops.explicit");
  Client client = service.connect();
  const std::string path = "/v2/models/loops.explicit/generate";
  const HttpAnswer answer = service.post(client, path, prompt(4));
  CHECK(answer.status == 200);
  CHECK(has(answer, "\"finish_reason\":\"length\""));
  CHECK(answer.has("Content-Length: "));
  SUBCASE("its client leaves") {
    client.post(path, prompt(1000000));
    service.settle();
    client.leave();
    while (service.telemetry->counters[0].closed == 0) {
      service.settle();
      service.after(1s);
    }
    CHECK(service.failed("loops.explicit", ErrorCode::kCancelled) == 1);
  }
  SUBCASE("an error before the first token is no stream") {
    const HttpAnswer refused = service.post(client, kStreamPath, R"({"prompt": []})");
    CHECK(refused.status == 400);
    CHECK(refused.has("Content-Length: "));
  }
}

TEST_CASE("http call: requests with the same affinity, or the same id, get the same set of weights") {
  HttpService service([](ServerConfig& config) {
    config.set_model("loops.explicit.sets=2", "the test");
    config.set_model("loops.explicit.routes=active:50,blue:50", "the test");
  });
  service.publish("loops.explicit");
  Client admin = service.connect(http::kAdmin);
  const std::string no_weights("\x02\0\0\0\0\0\0\0{}", 10);  // all are those of the active set
  const HttpAnswer filled = service.post(admin, "/v2/admin/models/loops.explicit/sets/blue?mode=partial", no_weights,
                                         "Content-Type: application/octet-stream\r\n");
  REQUIRE_MESSAGE(filled.status == 200, filled.body);
  Client client = service.connect();
  const auto gets_blue = [&](const std::string& fields, const std::string& model = "loops.explicit") {
    const HttpAnswer answer = service.post(client, "/v2/models/" + model + "/generate", prompt(1), fields);
    CHECK(answer.status == 200);
    return answer.has("Sconce-Weights: blue\r\n");
  };
  for (const std::string field : {"Sconce-Affinity: ", "X-Request-Id: "}) {
    int blue = 0;
    for (int key = 0; key < 16; ++key) {
      const std::string fields = field + std::to_string(key) + "\r\n";
      const bool first = gets_blue(fields);
      for (int i = 0; i < 3; ++i) CHECK(gets_blue(fields) == first);
      blue += first ? 1 : 0;
    }
    CHECK(blue > 0);
    CHECK(blue < 16);
  }
  for (int i = 0; i < 4; ++i) {
    CHECK(gets_blue("Sconce-Weights: blue\r\n"));
    CHECK(gets_blue({}, "loops.explicit@blue"));
    CHECK_FALSE(gets_blue({}, "loops.explicit@active"));
  }
  const HttpAnswer both =
      service.post(client, "/v2/models/loops.explicit@blue/generate", prompt(1), "Sconce-Weights: active\r\n");
  CHECK(both.status == 400);
}

TEST_CASE("http call: a trace has the request's id and path, and the client's context only if this request has one") {
  HttpService service([](ServerConfig& config) {
    config.trace_level = TraceLevel::kTimestamps;
    config.trace_rate = 1;
  });
  service.publish("m");
  Client client = service.connect();
  const std::string trace = "4bf92f3577b34da6a3ce929d0e0e4736";
  const auto traced = [&] { return service.telemetry->tracer.records("m", 100); };
  service.post(client, kInferPath, kInferRequest,
               "X-Request-Id: an-id\r\ntraceparent: 00-" + trace + "-00f067aa0ba902b7-01\r\n");
  service.settle();
  const std::string first = traced();
  CHECK(first.find("an-id") != std::string::npos);
  CHECK(first.find("POST " + kInferPath) != std::string::npos);
  const size_t known = count(first, trace);
  CHECK(known > 0);
  service.post(client, kInferPath, kInferRequest);
  service.settle();
  CHECK(count(traced(), "POST " + kInferPath) == 2);
  CHECK(count(traced(), trace) == known);
  service.get(client, "/v2/models/m");
  CHECK(count(traced(), "POST ") == 2);  // runs only
}

}  // namespace sconce::server::api
