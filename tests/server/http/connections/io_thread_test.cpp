#include "server/http/connections/io_thread.h"

#include <doctest/doctest.h>

#include <ctime>
#include <string>
#include <thread>

#include "tests/server/http/connections/served.h"

namespace sconce::server::http {

using namespace sconce::server::test;
using namespace std::chrono_literals;

TEST_CASE("io thread: it ticks every 100 ms while it has connections, then rests until the next one") {
  Served served;
  served.settle();
  CHECK(served.ticks == 1);
  CHECK(served.rests == 1);
  served.after(1h);
  CHECK(served.ticks == 1);
  Client client = served.connect();
  served.after(99ms);
  CHECK(served.ticks == 1);
  served.after(1ms);
  CHECK(served.ticks == 2);
  for (int i = 0; i < 10; ++i) served.after(100ms);
  CHECK(served.ticks == 12);
  CHECK(served.rests == 1);
  client.leave();
  served.settle();
  CHECK(served.rests == 1);
  served.after(100ms);
  CHECK(served.rests == 2);
  served.after(1h);
  CHECK(served.ticks == 13);
}

TEST_CASE("io thread: deadlines of runs are checked when they come, other connections at the tick") {
  Served served;
  Client run = served.connect();
  served.after(50ms);
  run.get("/queue");
  served.settle();
  const int before = served.ticks;
  served.after(30ms);
  for (int i = 0; i < 149; ++i) served.after(100ms);
  CHECK(served.ticks == before + 149);
  served.after(69ms);
  CHECK(served.ticks == before + 149);
  CHECK(run.take() == "");
  served.after(1ms);  // the next tick would be 30 ms later
  CHECK(served.ticks == before + 150);
  CHECK(run.answer().status == 504);
}

TEST_CASE("io thread: answers have the date") {
  Served served;
  Client client = served.connect();
  client.get("/soon");
  served.settle();
  const Answer answer = client.answer();
  const size_t at = answer.fields.find("Date: ");
  REQUIRE(at != std::string::npos);
  std::tm read{};
  const char* const end = ::strptime(answer.fields.c_str() + at, "Date: %a, %d %b %Y %H:%M:%S GMT", &read);
  REQUIRE(end != nullptr);
  CHECK(std::string(end, 2) == "\r\n");
  const std::time_t now = std::time(nullptr), then = ::timegm(&read);
  CHECK(then <= now);
  CHECK(then >= now - 2);
}

TEST_CASE("io thread: a client's address is told as in a URL") {
  Served served;
  const auto peer_of = [](const char* address) {
    return Accepted(Descriptor(), {boost::asio::ip::make_address(address), 50000}, kPublic, {}).peer();
  };
  CHECK(peer_of("192.0.2.7") == "192.0.2.7:50000");
  CHECK(peer_of("2001:db8::7") == "[2001:db8::7]:50000");
  CHECK(peer_of("::ffff:192.0.2.7") == "192.0.2.7:50000");
}

TEST_CASE("io thread: a connection that cannot be watched is closed and counted, and the others go on") {
  Served served;
  Client client = served.connect();
  served.io.serve(Accepted(Descriptor(), {boost::asio::ip::make_address("192.0.2.8"), 1}, kPublic,
                           OpenConnections::Slot(served.connections, kPublic)));
  served.settle();
  CHECK(served.open() == 1);
  CHECK(served.counters[0].accepted == 2);
  CHECK(served.closed() == 1);
  client.get("/soon");
  served.run_once();
  CHECK(client.answer().body == "soon");
}

TEST_CASE("io thread: with a thread of its own it serves as well, and ends when told") {
  Served served;
  Client client = served.connect();
  served.io.start();
  client.get("/soon");
  std::string answer;
  for (const auto end = Clock::now() + 10s; answer.empty() && Clock::now() < end; std::this_thread::yield())
    answer = client.take();
  CHECK(answer.ends_with("soon"));
  served.io.stop();
  CHECK(client.ended());
}

}  // namespace sconce::server::http
