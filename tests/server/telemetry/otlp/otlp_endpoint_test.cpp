#include "server/telemetry/otlp/otlp_endpoint.h"

#include "tests/errors.h"
#include "tests/files.h"

namespace sconce::server::telemetry {

using namespace std::chrono_literals;

namespace {

using Result = OtlpPush::Result;

OtlpPush judged(int status, const std::string& body = {}, const std::string& retry_after = {}) {
  http::Answer answer;
  answer.status = status;
  answer.body = body;
  if (!retry_after.empty()) answer.fields["retry-after"] = retry_after;
  return judge_otlp(answer);
}

}  // namespace

TEST_CASE("otlp endpoint: URLs") {
  const http::AdminServer plain = parse_otlp_url("http://collector:4318");
  CHECK(plain.host == "collector");
  CHECK(plain.port == "4318");
  CHECK(plain.prefix.empty());
  CHECK_FALSE(plain.tls);
  const http::AdminServer behind = parse_otlp_url("https://[::1]/otlp/");
  CHECK(behind.host == "::1");
  CHECK(behind.port == "443");
  CHECK(behind.prefix == "/otlp");
  CHECK(behind.tls);
  CHECK(parse_otlp_url("http://a").port == "80");
  for (const char* bad : {"", "collector:4318", "grpc://a:4317", "http://", "http://a?x=1", "http://a#b",
                          "http://u:p@a", "http://127.0.0.1.example", "http://a:b"}) {
    CAPTURE(bad);
    CHECK(contains(error_from([&] { parse_otlp_url(bad); }), "setting otlp"));
  }
}

TEST_CASE("otlp endpoint: header fields") {
  const TempFolder folder;
  const auto read = [&](const std::string& text) { return read_otlp_headers(folder.write("headers", text).string()); };
  CHECK(read_otlp_headers("").empty());
  const std::vector<std::string> fields =
      read("# for the gateway\n\nAuthorization: Bearer a:b c\r\n x-scope:1\nx-empty:\n");
  REQUIRE(fields.size() == 3);
  CHECK(fields[0] == "Authorization: Bearer a:b c");
  CHECK(fields[1] == "x-scope: 1");
  CHECK(fields[2] == "x-empty;");
  for (const char* bad : {"secret", ": secret", "a b: secret", "a: secret\x01"}) {
    CAPTURE(bad);
    const std::string error = error_from([&] { read(std::string("x: 1\n") + bad); });
    CHECK(contains(error, ":2"));
    CHECK_FALSE(contains(error, "secret"));
  }
  CHECK(contains(error_from(ErrorCode::kIo, [&] { read_otlp_headers((folder / "none").string()); }),
                 "cannot read setting otlp_headers_file"));
}

TEST_CASE("otlp endpoint: what an answer means") {
  CHECK(judged(200, "{}").result == Result::kTaken);
  CHECK(judged(200).result == Result::kTaken);
  CHECK(judged(202, "not JSON").result == Result::kTaken);
  for (const int status : {0, 429, 502, 503, 504}) CHECK(judged(status).result == Result::kAgain);
  for (const int status : {301, 400, 401, 404, 413, 500, 501}) CHECK(judged(status).result == Result::kRefused);
  CHECK(judged(503, "", "7").retry_after == 7s);
  CHECK(judged(503, "", "100000").retry_after == 300s);
  CHECK_FALSE(judged(503, "", "Wed, 21 Oct 2026 07:28:00 GMT").retry_after);
  const OtlpPush partial = judged(200, R"({"partialSuccess":{"rejectedSpans":"3","errorMessage":"too old"}})");
  CHECK(partial.result == Result::kTaken);
  CHECK(partial.rejected == 3);
  CHECK(partial.problem == "too old");
  CHECK(judged(200, R"({"partialSuccess":{"rejectedDataPoints":4}})").rejected == 4);
  CHECK(judged(200, R"({"partialSuccess":[],"x":1})").rejected == 0);
  // The same in protobuf, which some collectors answer: field 1 {1: 300, 2: "too old"}.
  const OtlpPush binary = judged(200, std::string("\x0a\x0c\x08\xac\x02\x12\x07too old", 14));
  CHECK(binary.result == Result::kTaken);
  CHECK(binary.rejected == 300);
  CHECK(binary.problem == "too old");
  CHECK(judged(200, std::string("\x0a\x00", 2)).problem.empty());
  for (const std::string& cut : {std::string("\x0a\x0c\x08\xac", 4), std::string("\x0a"), std::string("\x00\x01", 2)}) {
    CHECK(judged(200, cut).result == Result::kTaken);
    CHECK(judged(200, cut).rejected == 0);
  }
  const OtlpPush page = judged(200, "\n<!doctype html><title>Welcome</title>");
  CHECK(page.result == Result::kRefused);
  CHECK(contains(page.problem, "page"));
  http::Answer binary_port;
  binary_port.problem = "no answer: the server does not speak HTTP/1.1";
  CHECK(contains(judge_otlp(binary_port).problem, "4317 is for gRPC"));
  CHECK(judge_otlp(binary_port).result == Result::kAgain);
  CHECK(judged(200, R"({"partialSuccess":{"rejectedSpans":-1,"errorMessage":5}})").rejected == 0);
}

TEST_CASE("otlp endpoint: pauses double up to half a minute, unless the collector says how long") {
  CHECK(otlp_pause(1, {}, 1) == 1s);
  CHECK(otlp_pause(1, {}, 0) == 500ms);
  CHECK(otlp_pause(2, {}, 1) == 2s);
  CHECK(otlp_pause(5, {}, 1) == 16s);
  CHECK(otlp_pause(6, {}, 1) == 30s);
  CHECK(otlp_pause(1000, {}, 1) == 30s);
  CHECK(otlp_pause(1000, 3s, 0.5) == 3s);
}

}  // namespace sconce::server::telemetry
