#include "server/http/request_parser.h"

#include <doctest/doctest.h>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/error.hpp>
#include <string>
#include <vector>

namespace sconce::server::http {
namespace {

struct Parsed {
  std::vector<char> bytes;  // of exactly the size of the text
  RequestParser parser{1 << 20};
  boost::beast::error_code ec;

  explicit Parsed(std::string_view text) : bytes(text.begin(), text.end()) {
    parser.put(boost::asio::const_buffer(bytes.data(), bytes.size()), ec);
  }
  int status() const { return ec && ec != boost::beast::http::error::need_more ? parser.status(ec) : 200; }
  std::vector<std::string_view> texts() const {
    const RequestHeader& head = parser.head();
    return {head.method_text,   head.target, head.request_id,   head.traceparent,
            head.authorization, head.origin, head.content_type, head.content_digest};
  }
};

std::string request(const std::string& fields) { return "POST /v2 HTTP/1.1\r\nHost: x\r\n" + fields + "\r\n"; }

const std::vector<std::string> kNames = {"Authorization",
                                         "Origin",
                                         "Content-Type",
                                         "Content-Digest",
                                         "traceparent",
                                         "X-Request-Id",
                                         "Content-Length",
                                         "Transfer-Encoding",
                                         "Host",
                                         "Expect",
                                         "Accept",
                                         "Accept-Encoding",
                                         "Content-Encoding",
                                         "X-Unknown-Name",
                                         "Connection",
                                         "Upgrade",
                                         "Inference-Header-Content-Length"};

}  // namespace

TEST_CASE("request_parser: a folded line is 400, whatever its name") {
  for (const std::string& name : kNames) {
    const std::string value = name.ends_with("Length") ? "5" : name == "Transfer-Encoding" ? "chunked" : "aa";
    for (const std::string& folded : {value + "\r\n bb", value + "\r\n\tbb", "\r\n " + value, "\r\n\t" + value,
                                      value + "\r\n ", value + "\r\n \r\n ", std::string("\r\n "),
                                      value + " \r\n  \t bb", value + "\r\n " + std::string(5000, 'c')}) {
      CAPTURE(name);
      CAPTURE(folded);
      const Parsed parsed(request(name + ": " + folded + "\r\n"));
      CHECK(parsed.status() == 400);
      CHECK(!parsed.parser.is_header_done());
    }
  }
}

TEST_CASE("request_parser: texts are views of what was parsed, until they are forgotten") {
  const std::string fields =
      "Authorization: Bearer t\r\nOrigin: o\r\nContent-Type: a/b\r\nContent-Digest: d\r\ntraceparent: p\r\n"
      "X-Request-Id: i\r\n";
  Parsed parsed(request(fields));
  REQUIRE(parsed.parser.is_header_done());
  CHECK(parsed.texts() == std::vector<std::string_view>{"POST", "/v2", "i", "p", "Bearer t", "o", "a/b", "d"});
  for (const std::string_view text : parsed.texts()) {
    CHECK(text.data() >= parsed.bytes.data());
    CHECK(text.data() + text.size() <= parsed.bytes.data() + parsed.bytes.size());
  }
  parsed.parser.forget_texts();
  for (const std::string_view text : parsed.texts()) CHECK(text.empty());
}

TEST_CASE("request_parser: a field that comes in pieces is taken once, and a fold between pieces is seen") {
  for (const std::string& text : {request("X-Request-Id: abc\r\n"), request("X-Request-Id: abc\r\n def\r\n")}) {
    for (size_t at = 1; at < text.size(); ++at) {
      std::string buffer = text;
      RequestParser parser(1 << 20);
      boost::beast::error_code ec;
      const size_t used = parser.put(boost::asio::const_buffer(buffer.data(), at), ec);
      if (!ec || ec == boost::beast::http::error::need_more)
        parser.put(boost::asio::const_buffer(buffer.data() + used, buffer.size() - used), ec);
      const bool folded = text.find("\r\n def") != std::string::npos;
      CHECK(parser.is_header_done() == !folded);
      if (folded)
        CHECK(parser.status(ec) == 400);
      else
        CHECK(parser.head().request_id == "abc");
    }
  }
}

TEST_CASE("request_parser: bodies in chunks end where they end") {
  const std::string text =
      request("Transfer-Encoding: chunked\r\n") + "5\r\nhello\r\n0\r\nX: y\r\n\r\n" + "GET / HTTP/1.1\r\n";
  Parsed parsed(text);
  REQUIRE(parsed.parser.is_header_done());
  REQUIRE(parsed.parser.chunked());
  BodyBuffer body;
  body.prepare(0, 0);
  parsed.parser.collect(body);
  const size_t head = request("Transfer-Encoding: chunked\r\n").size();
  const size_t used =
      parsed.parser.put(boost::asio::const_buffer(parsed.bytes.data() + head, text.size() - head), parsed.ec);
  CHECK(!parsed.ec);
  CHECK(parsed.parser.is_done());
  CHECK(head + used == text.size() - std::string("GET / HTTP/1.1\r\n").size());
  CHECK(std::string_view(reinterpret_cast<const char*>(body.begin()), body.size()) == "hello");
}

TEST_CASE("request_parser: a body in chunks has the limit of bodies") {
  for (const std::string& chunks : {std::string("ffffffffffffffff\r\n"), std::string("11\r\n"),
                                    std::string("9\r\n123456789\r\n8\r\n12345678\r\n0\r\n\r\n")}) {
    RequestParser parser(16);
    boost::beast::error_code ec;
    const std::string text = request("Transfer-Encoding: chunked\r\n");
    parser.put(boost::asio::const_buffer(text.data(), text.size()), ec);
    BodyBuffer body;
    body.prepare(0, 0);
    parser.collect(body);
    parser.put(boost::asio::const_buffer(chunks.data(), chunks.size()), ec);
    CHECK(parser.status(ec) == 413);
    CHECK(body.size() <= 16);
  }
}

}  // namespace sconce::server::http
