#include "server/http/request_reader.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "sconce/error.h"
#include "server/support/memory/request_budget.h"

namespace sconce::server::http {

using Step = RequestReader::Step;

namespace {

// A reader that is fed by the test.
struct Reading {
  ServerConfig config;
  RequestBudget budget{1 << 20};
  Transport transport{Descriptor(), nullptr};
  ClientClock clock;
  RequestReader reader;

  explicit Reading(int64_t header_bytes = 4096)
      : reader(sized(config, header_bytes), 1 << 20, budget, transport, clock) {}
  static const ServerConfig& sized(ServerConfig& config, int64_t header_bytes) {
    config.max_header_bytes = header_bytes;
    return config;
  }

  // Feeds pieces of `most` bytes. Returns the first step that is not kMore, or kMore when all bytes were taken.
  Step send(std::string_view bytes, size_t most = SIZE_MAX) {
    for (Step step = reader.step();; step = reader.step()) {
      if (step != Step::kMore || bytes.empty()) return step;
      const std::span<char> room = reader.room();
      if (room.empty()) return Step::kRefused;
      const size_t piece = std::min({bytes.size(), room.size(), most});
      std::memcpy(room.data(), bytes.data(), piece);
      reader.received(piece);
      bytes.remove_prefix(piece);
    }
  }
  std::string body() const { return {reinterpret_cast<const char*>(reader.body().begin()), reader.body().size()}; }
  // Returns target and body of the request whose head was reported and whose body is complete, and ends the request.
  std::string take_request() {
    const std::string target(reader.head().target);
    REQUIRE(reader.begin_body());
    REQUIRE(reader.step() == Step::kBody);
    const std::string text = target + " " + body();
    reader.end();
    return text;
  }
};

std::string post(const std::string& target, const std::string& body, const std::string& fields = {}) {
  return "POST " + target + " HTTP/1.1\r\nHost: x\r\n" + fields + "Content-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

}  // namespace

TEST_CASE("request reader: a head that is the last one again means the same, in any place and with any body") {
  Reading one;
  const std::string fields = "X-Request-Id: seven\r\nAuthorization: Bearer key\r\nExpect: 100-continue\r\n";
  const auto take = [&](const std::string& body) {
    const RequestHeader& head = one.reader.head();
    CHECK(head.method == Method::kPost);
    CHECK(head.method_text == "POST");
    CHECK(head.request_id == "seven");
    CHECK(head.authorization == "Bearer key");
    CHECK(head.host == "x");
    CHECK(head.origin.empty());
    CHECK(head.expects_continue);
    CHECK(one.reader.keep_alive());
    CHECK(one.reader.content_length() == body.size());
    CHECK(one.take_request() == "/a " + body);
  };
  for (const char* body : {"first", "again"}) {
    REQUIRE(one.send(post("/a", body, fields)) == Step::kHead);
    take(body);
  }
  // Behind another request, which is not the last head.
  REQUIRE(one.send(post("/a", "third", fields) + post("/b", "") + post("/a", "other", fields) +
                   post("/a", "after", fields)) == Step::kHead);
  take("third");
  REQUIRE(one.reader.step() == Step::kHead);
  CHECK(one.take_request() == "/b ");
  for (const char* body : {"other", "after"}) {
    REQUIRE(one.reader.step() == Step::kHead);
    take(body);
  }
  // One that comes in pieces is parsed.
  REQUIRE(one.send(post("/a", "piece", fields), 7) == Step::kHead);
  CHECK(one.reader.head().request_id == "seven");
  CHECK(one.reader.content_length() == 5);
}

TEST_CASE("request reader: a head is no repetition because it begins like the last one") {
  Reading one;
  REQUIRE(one.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\n") == Step::kHead);
  CHECK(one.take_request() == "/a ");
  REQUIRE(one.send("GET /a HTTP/1.1\r\nHost: x\r\nAccept: text/html\r\n\r\n") == Step::kHead);
  CHECK(one.reader.head().accepts_html);
  CHECK(one.take_request() == "/a ");
  REQUIRE(one.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\n") == Step::kHead);
  CHECK_FALSE(one.reader.head().accepts_html);
  CHECK(one.take_request() == "/a ");
  // A repetition with a body in chunks behind it is two requests.
  const std::string chunked = "POST /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n";
  for (int i = 0; i < 3; ++i) {
    REQUIRE(one.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\n" + chunked) == Step::kHead);
    CHECK(one.take_request() == "/a ");
    REQUIRE(one.reader.step() == Step::kHead);
    CHECK(one.take_request() == "/c ab");
  }
}

TEST_CASE("request reader: an upload of a repeated head has a parser that knows its length") {
  Reading one;
  for (int i = 0; i < 2; ++i) {
    REQUIRE(one.send(post("/w", "weights")) == Step::kHead);
    const UploadSource source = one.reader.begin_upload();
    REQUIRE(source.parser != nullptr);
    CHECK_FALSE(source.parser->chunked());
    CHECK(source.parser->content_length().value_or(0) == 7);
    CHECK(source.input->here() == "weights");
    source.input->use(7);
    one.reader.end_upload(true);
    one.reader.end();
  }
}

TEST_CASE("request reader: requests that come together are read one after the other") {
  Reading one;
  CHECK(one.reader.idle());
  REQUIRE(one.send(post("/a", "first") + post("/b", "") + post("/c", "third")) == Step::kHead);
  CHECK_FALSE(one.reader.idle());
  CHECK(one.take_request() == "/a first");
  CHECK(one.reader.idle());
  REQUIRE(one.reader.step() == Step::kHead);
  CHECK(one.take_request() == "/b ");
  REQUIRE(one.reader.step() == Step::kHead);
  CHECK(one.take_request() == "/c third");
  CHECK(one.reader.step() == Step::kMore);
  CHECK(one.reader.idle());
}

TEST_CASE("request reader: a request in pieces of any size") {
  for (size_t piece : {size_t{1}, size_t{2}, size_t{3}, size_t{7}, size_t{50}}) {
    Reading one;
    const std::string request = post("/a", "0123456789");
    REQUIRE(one.send(request.substr(0, request.size() - 10), piece) == Step::kHead);
    CHECK_FALSE(one.reader.body_is_here());
    REQUIRE(one.reader.begin_body());
    CHECK(one.reader.in_body());
    CHECK(one.send("01234", piece) == Step::kMore);
    CHECK(one.send("56789", piece) == Step::kBody);
    CHECK(one.body() == "0123456789");
  }
}

TEST_CASE("request reader: a request that was not read to its end is unfinished") {
  Reading one;
  CHECK_FALSE(one.reader.unfinished());
  CHECK(one.send("POST /a HTTP/1.1\r\nHo") == Step::kMore);
  CHECK(one.reader.unfinished());  // if this head is refused, its rest must not be read as a request
  REQUIRE(one.send("st: x\r\nContent-Length: 3\r\n\r\nab") == Step::kHead);
  CHECK(one.reader.unfinished());
  REQUIRE(one.reader.begin_body());
  CHECK(one.reader.step() == Step::kMore);
  CHECK(one.reader.unfinished());
  CHECK(one.send("c") == Step::kBody);
  CHECK_FALSE(one.reader.unfinished());
  one.reader.end();
  REQUIRE(one.send("GET /b HTTP/1.1\r\nHost: x\r\n\r\n") == Step::kHead);
  CHECK_FALSE(one.reader.unfinished());  // it has no body
}

TEST_CASE("request reader: one empty line before a request") {
  Reading one;
  REQUIRE(one.send("\r", 1) == Step::kMore);
  REQUIRE(one.send("\n", 1) == Step::kMore);
  CHECK(one.reader.idle());
  REQUIRE(one.send(post("/a", "x")) == Step::kHead);
  CHECK(one.take_request() == "/a x");
  CHECK(one.send("\r\n" + post("/b", "y")) == Step::kHead);
  CHECK(one.take_request() == "/b y");
  CHECK(one.send("\r\n\r\n" + post("/c", "z")) == Step::kRefused);
  CHECK(one.reader.refusal().status == 400);
  CHECK(one.reader.unfinished());
}

TEST_CASE("request reader: a head that begins behind another request has all of the buffer") {
  Reading one(256);
  const std::string first = post("/a", std::string(100, 'x')), second = post("/" + std::string(150, 'b'), "y");
  const std::string both = first + second;
  REQUIRE(both.size() > 256);
  REQUIRE(second.size() < 256);
  REQUIRE(one.send(both.substr(0, 256)) == Step::kHead);
  CHECK(one.take_request() == "/a " + std::string(100, 'x'));
  REQUIRE(one.send(both.substr(256)) == Step::kHead);
  CHECK(one.take_request() == "/" + std::string(150, 'b') + " y");
  CHECK(one.send("GET /" + std::string(300, 'c') + " HTTP/1.1\r\n") == Step::kRefused);
  CHECK(one.reader.refusal().status == 431);
}

TEST_CASE("request reader: what comes while a request is answered begins the next one") {
  Reading one;
  REQUIRE(one.send(post("/a", "x")) == Step::kHead);
  REQUIRE(one.reader.begin_body());
  REQUIRE(one.reader.step() == Step::kBody);
  const std::string next = post("/b", "y");
  const std::span<char> room = one.reader.room_ahead();
  REQUIRE(room.size() >= next.size());
  std::memcpy(room.data(), next.data(), next.size());
  one.reader.received_ahead(next.size());
  CHECK(one.body() == "x");
  one.reader.end();
  REQUIRE(one.reader.step() == Step::kHead);
  CHECK(one.take_request() == "/b y");
}

TEST_CASE("request reader: bodies in chunks") {
  const std::string head = "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  SUBCASE("with what comes behind them") {
    Reading one;
    REQUIRE(one.send(head + "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n" + post("/b", "y")) == Step::kHead);
    CHECK_FALSE(one.reader.body_is_here());
    CHECK(one.take_request() == "/a abcde");
    REQUIRE(one.reader.step() == Step::kHead);
    CHECK(one.take_request() == "/b y");
  }
  SUBCASE("larger than allowed") {
    Reading one;
    REQUIRE(one.send(head) == Step::kHead);
    one.reader.limit_body(4);
    REQUIRE(one.reader.begin_body());
    CHECK(one.send("3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n") == Step::kTooLong);
    CHECK(one.reader.unfinished());
  }
  SUBCASE("malformed") {
    Reading one;
    REQUIRE(one.send(head) == Step::kHead);
    REQUIRE(one.reader.begin_body());
    CHECK(one.send("x\r\n") == Step::kRefused);
    CHECK(one.reader.refusal().status == 400);
  }
  SUBCASE("with a line that is longer than the buffer and does not end") {
    Reading one(256);
    REQUIRE(one.send(head) == Step::kHead);
    REQUIRE(one.reader.begin_body());
    CHECK(one.send("3;" + std::string(20000, 'e')) == Step::kRefused);
    CHECK(one.reader.refusal().status == 400);
  }
}

TEST_CASE("request reader: a body that the budget has no room for is refused before it is read") {
  Reading one;
  one.budget.take(1 << 19);
  REQUIRE(one.send("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 800000\r\n\r\n") == Step::kHead);
  CHECK_THROWS_AS(one.reader.begin_body(), Error);
  CHECK(one.reader.unfinished());
  CHECK(one.budget.used() == 1 << 19);
}

TEST_CASE("request reader: bytes of a body give the client time, those of a head do not") {
  Reading one;
  REQUIRE(one.send("POST /a HTTP/1.1\r\n") == Step::kMore);
  const ClientClock::Time head = one.clock.deadline();
  REQUIRE(one.send("Host: x\r\nContent-Length: 400000\r\n\r\n") == Step::kHead);
  CHECK(one.clock.deadline() == head);
  REQUIRE(one.reader.begin_body());
  const ClientClock::Time before = one.clock.deadline();
  CHECK(one.send(std::string(1000, 'x')) == Step::kMore);
  CHECK(one.clock.deadline() > before);
}

TEST_CASE("request reader: memory of large bodies goes when it is trimmed") {
  Reading one;
  const std::string body(300000, 'x');
  REQUIRE(one.send("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 300000\r\n\r\n") == Step::kHead);
  REQUIRE(one.reader.begin_body());
  REQUIRE(one.send(body) == Step::kBody);
  CHECK(one.body() == body);
  CHECK(one.reader.largest() == body.size());
  one.reader.end();
  CHECK(one.reader.capacity() >= body.size());
  one.reader.trim(1000);
  CHECK(one.reader.capacity() <= 1000);
  CHECK(one.reader.largest() == 0);
  CHECK(one.budget.used() == 0);
}

TEST_CASE("request reader: an idle connection has no buffer, and the next request has one") {
  Reading reading;
  reading.budget.count_small(true);
  CHECK(reading.budget.used() == 0);
  REQUIRE(reading.send(post("/one", "body")) == Step::kHead);
  CHECK(reading.budget.used() >= 4096);
  reading.reader.rest();  // not while a request is under way
  CHECK(reading.take_request() == "/one body");
  const uint64_t with_buffer = reading.budget.used();
  reading.reader.rest();
  CHECK(reading.budget.used() == with_buffer - 4096);
  REQUIRE(reading.send(post("/two", "more")) == Step::kHead);
  CHECK(reading.take_request() == "/two more");
  // Bytes of the next request stay.
  REQUIRE(reading.send(post("/three", "x") + "GET /four") == Step::kHead);
  CHECK(reading.take_request() == "/three x");
  reading.reader.rest();
  REQUIRE(reading.send(" HTTP/1.1\r\nHost: x\r\n\r\n") == Step::kHead);
  CHECK(reading.reader.head().target == "/four");
}

TEST_CASE("request reader: without room for a head the connection is told so") {
  Reading reading;
  reading.budget.count_small(true);
  reading.budget.overdraw((1 << 20) + (1 << 18));
  CHECK(reading.send("GET / HTTP/1.1\r\n") == Step::kRefused);
  CHECK(reading.reader.refusal().status == 503);
  reading.budget.give((1 << 20) + (1 << 18));
  CHECK(reading.budget.used() == 0);
}

}  // namespace sconce::server::http
