#include "server/http/response_writer.h"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/error.hpp>
#include <string>

namespace sconce::server::http {
namespace {

constexpr std::string_view kDate = "Thu, 01 Jan 1970 00:00:00 GMT";
const Pace kPace = Pace::of(std::chrono::seconds(30), 1 << 16);

// A writer and the other end of its connection.
struct Sending {
  int client = -1;
  Transport transport;
  ClientClock clock;
  ResponseWriter writer{transport, clock};
  Response response;

  Sending() : transport(connect(), nullptr) { response.reset(); }
  ~Sending() { ::close(client); }

  Descriptor connect() {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
    client = ends[1];
    return Descriptor(ends[0]);
  }
  std::string taken(size_t most = 1 << 20) const {
    std::string bytes(most, '\0');
    const ssize_t got = ::recv(client, bytes.data(), bytes.size(), MSG_DONTWAIT);
    bytes.resize(got > 0 ? static_cast<size_t>(got) : 0);
    return bytes;
  }
};

}  // namespace

TEST_CASE("answer writer: head, text and segments in order") {
  Sending one;
  const std::string tensor = "tensor", empty, last = "last";
  one.response.set_text("text ");
  one.response.segments = {{tensor.data(), tensor.size()}, {empty.data(), 0}, {last.data(), last.size()}};
  one.writer.begin(one.response, {.close = true}, kDate, kPace, ClientClock::Clock::now());
  CHECK(one.writer.closes());
  CHECK_FALSE(one.writer.done());
  boost::system::error_code ec;
  const size_t sent = one.writer.write(ec);
  CHECK_FALSE(ec);
  CHECK(one.writer.done());
  CHECK(one.writer.done_at_once());
  const std::string bytes = one.taken();
  CHECK(sent == bytes.size());
  CHECK(one.writer.bytes() == bytes.size());
  CHECK(bytes.starts_with("HTTP/1.1 200"));
  CHECK(bytes.find("Connection: close\r\n") != std::string::npos);
  CHECK(bytes.ends_with("\r\n\r\ntext tensorlast"));
}

TEST_CASE("answer writer: small tensors leave with the text, large ones from where they are") {
  for (const size_t bytes : {16, 2048, 2049}) {
    Sending one;
    std::string tensor(bytes, 'a');
    one.response.set_text("text ");
    one.response.segments = {{tensor.data(), bytes / 2}, {tensor.data() + bytes / 2, bytes - bytes / 2}};
    one.writer.begin(one.response, {}, kDate, kPace, ClientClock::Clock::now());
    const bool copied = one.response.segments.empty();
    CHECK(copied == (bytes <= 2048));
    std::fill(tensor.begin(), tensor.end(), 'b');
    boost::system::error_code ec;
    one.writer.write(ec);
    REQUIRE(one.writer.done());
    const std::string sent = one.taken();
    CHECK(sent.find("Content-Length: " + std::to_string(5 + bytes) + "\r\n") != std::string::npos);
    CHECK(sent.ends_with("\r\n\r\ntext " + std::string(bytes, copied ? 'a' : 'b')));
  }
}

TEST_CASE("answer writer: HEAD has no body") {
  Sending one;
  const std::string tensor = "tensor";
  one.response.set_text("text ");
  one.response.segments = {{tensor.data(), tensor.size()}};
  one.writer.begin(one.response, {.head_only = true}, kDate, kPace, ClientClock::Clock::now());
  CHECK_FALSE(one.writer.closes());
  boost::system::error_code ec;
  one.writer.write(ec);
  CHECK(one.writer.done());
  const std::string bytes = one.taken();
  CHECK(bytes.ends_with("\r\n\r\n"));
  CHECK(bytes.find("Content-Length: 11\r\n") != std::string::npos);
}

TEST_CASE("answer writer: a client that takes its answer slowly gets all of it, and time for what it takes") {
  Sending one;
  std::string tensor(4 << 20, '\0');
  for (size_t i = 0; i < tensor.size(); ++i) tensor[i] = static_cast<char>(i % 251);
  one.response.segments = {{tensor.data(), tensor.size() / 2},
                           {tensor.data() + tensor.size() / 2, tensor.size() - tensor.size() / 2}};
  one.writer.begin(one.response, {}, kDate, kPace, ClientClock::Clock::now());
  ClientClock::Time deadline = one.clock.deadline();
  std::string all;
  int blocked = 0;
  while (!one.writer.done()) {
    boost::system::error_code ec;
    const size_t sent = one.writer.write(ec);
    if (ec) {
      REQUIRE(ec == boost::asio::error::would_block);
      CHECK(sent == 0);
      CHECK(one.clock.deadline() == deadline);  // no byte was sent, so the deadline stays
      ++blocked;
      all += one.taken(100000);
    }
    deadline = one.clock.deadline();
  }
  CHECK(blocked > 10);
  CHECK_FALSE(one.writer.done_at_once());
  for (std::string more = one.taken(); !more.empty(); more = one.taken()) all += more;
  CHECK(all.size() == one.writer.bytes());
  CHECK(all.substr(all.size() - tensor.size()) == tensor);
}

TEST_CASE("answer writer: a client that has gone is an error") {
  Sending one;
  ::shutdown(one.client, SHUT_RDWR);
  ::close(one.client);
  one.writer.begin(one.response, {}, kDate, kPace, ClientClock::Clock::now());
  boost::system::error_code ec;
  CHECK(one.writer.write(ec) == 0);
  CHECK(ec);
  CHECK(ec != boost::asio::error::would_block);
  CHECK_FALSE(one.writer.done());
  one.client = -1;
}

}  // namespace sconce::server::http
