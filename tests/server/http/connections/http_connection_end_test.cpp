// How an HttpConnection ends: the client leaves in each state, the last answer lingers, the server ends.
#include <doctest/doctest.h>

#include <string>
#include <thread>

#include "tests/server/http/connections/served.h"

namespace sconce::server::http {

using namespace sconce::server::test;
using namespace std::chrono_literals;

namespace {

// A client whose request another thread has, behind `answers` that it has not taken: its end is then a reset.
Client waiting_client(Served& served, const std::string& target, int answers = 0) {
  Client client = served.connect();
  for (int i = 0; i < answers; ++i) client.get("/soon");
  client.get(target);
  served.settle();
  served.seen();
  return client;
}

}  // namespace

TEST_CASE("http connection end: a closed connection stays until the next tick") {
  Served served;
  Client client = served.connect();
  client.leave();
  served.settle();
  CHECK(served.seen() == "abandon");
  CHECK(served.closed() == 1);
  CHECK(served.open() == 0);
  served.after(99ms);
  CHECK(served.seen() == "");
  served.after(1ms);
  CHECK(served.seen() == "gone");
}

TEST_CASE("http connection end: a client that leaves while it sends a request is left, and nothing is answered") {
  for (const char* const part : {"POST /echo HT", "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nabc",
                                 "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\na"}) {
    CAPTURE(part);
    Served served;
    Client client = served.connect();
    client.send(part);
    served.settle();
    served.seen();
    SUBCASE("for good") { client.leave(); }
    SUBCASE("but would read an answer") { client.finish(); }
    served.settle();
    CHECK(served.seen() == "abandon");
    CHECK(served.closed() == 1);
  }
}

TEST_CASE("http connection end: a client may finish sending right behind its requests, and has all answers") {
  Served served;
  Client client = served.connect();
  client.post("/echo", "a");
  client.post("/echo", "b");
  client.finish();
  served.settle();
  CHECK(client.answers().size() == 2);
  CHECK(client.ended());
  CHECK(served.closed() == 1);
}

TEST_CASE("http connection end: after a run has begun, its answer goes to a client that sends no more") {
  Served served;
  Client client = waiting_client(served, "/run");
  client.finish();
  served.settle();
  CHECK(served.seen() == "cancel");
  served.after(1s);
  CHECK(served.seen() == "");
  served.stream().let_go("done");
  served.settle();
  CHECK(served.seen() == "resume, count 200, end, abandon");
  CHECK(client.answer().body == "done");
  CHECK(client.ended());
  CHECK(served.closed() == 1);
}

TEST_CASE("http connection end: a request that still waits is cancelled when its client sends no more") {
  Served served;
  Client client = waiting_client(served, "/queue");
  client.finish();
  served.run_once();
  CHECK(served.seen() == "cancel, abandon");
  CHECK(client.ended());
  CHECK(served.closed() == 1);
}

TEST_CASE("http connection end: a reset ends the connection, which stays while a thread has its request") {
  Served served;
  Client client = waiting_client(served, "/run", 1);
  client.leave();
  served.settle();
  CHECK(served.seen() == "cancel, abandon");
  CHECK(served.closed() == 0);
  served.after(1s);
  CHECK(served.seen() == "");
  served.stream().let_go();
  served.run_once();
  CHECK(served.seen() == "take back");
  CHECK(served.closed() == 1);
  served.after(100ms);
  CHECK(served.seen() == "gone");
}

TEST_CASE("http connection end: a client's end is read behind the request that was read ahead") {
  Served served;
  Client client = waiting_client(served, "/run");
  client.post("/echo", "next");
  client.finish();
  served.settle();
  CHECK(served.seen() == "cancel");
  served.stream().let_go("done");
  served.settle();
  CHECK(served.seen() == "resume, count 200, end, begin /echo, dispatch 4, count 200, end, abandon");
  CHECK(client.answers().size() == 2);
  CHECK(client.ended());
}

TEST_CASE("http connection end: that a client left is seen after its answer, where the socket is not read meanwhile") {
  Served served;
  Client client = waiting_client(served, "/task");
  client.leave();
  served.settle();
  CHECK(served.seen() == "");
  served.stream().let_go();
  served.settle();
  CHECK(served.seen() == "resume, count 200, abandon");
  CHECK(served.closed() == 1);
}

TEST_CASE("http connection end: a client that leaves between two pieces of its answer") {
  Served served;
  Client client = waiting_client(served, "/pieces");
  served.stream().add_piece("one");
  served.run_once();
  CHECK(served.seen() == "resume, count 200, next");
  SUBCASE("has the rest, if it still reads") {
    client.finish();
    served.run_once();
    CHECK(served.seen() == "cancel");
    served.stream().add_piece("two", true);
    served.settle();
    CHECK(served.seen() == "resume, end, abandon");
    CHECK(client.answer().body == "onetwo");
  }
  SUBCASE("is left at once after a reset, and the thread when it lets go") {
    client.leave();
    served.run_once();
    CHECK(served.seen() == "cancel, abandon");
    CHECK(served.closed() == 0);
    served.stream().add_piece("two");
    served.run_once();
    CHECK(served.seen() == "take back");
    CHECK(served.closed() == 1);
  }
}

TEST_CASE("http connection end: a feed ends when its client sends no more") {
  Served served;
  Client client = waiting_client(served, "/feed");
  client.finish();
  served.run_once();
  CHECK(served.seen() == "abandon");
  CHECK(client.answer().body == "hello\n");
  CHECK(client.ended());
}

TEST_CASE("http connection end: what the client of a feed sends is not read as requests") {
  Served served;
  Client client = waiting_client(served, "/feed");
  client.get("/soon");
  served.after(100ms);
  CHECK(served.seen() == "resume");
}

TEST_CASE("http connection end: a client that leaves while it is sent an answer") {
  Served served;
  Client client = waiting_client(served, "/big");
  SUBCASE("is left") {
    client.leave();
    served.settle();
    CHECK(served.seen() == "abandon");
    CHECK(served.closed() == 1);
  }
  SUBCASE("has the rest, if it still reads") {
    client.finish();
    size_t bytes = 0;
    for (int i = 0; i < 1000 && !served.closed(); ++i) {
      bytes += client.take(1 << 20).size();
      served.run_once();
    }
    bytes += client.take().size();
    CHECK(bytes > 8 << 20);
    CHECK(bytes == served.sent());
    CHECK(served.seen() == "end, abandon");
  }
}

TEST_CASE("http connection end: what comes behind a refused request is thrown away, so that the answer arrives") {
  ServerConfig config = Served::defaults();
  config.max_header_bytes = 65536;
  Served served(config);
  Client client = served.connect();
  client.send("POST /refuse HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nabc");
  served.settle();
  CHECK(served.seen() == "begin /refuse, refuse 403, count 403, end");
  CHECK(client.answer().status == 403);
  CHECK(client.ended());  // the server sends no more
  CHECK(served.open() == 1);
  const uint64_t before = served.received();
  SUBCASE("until the client leaves") {
    client.send("POST /echo HTTP/1.1\r\n");
    served.settle();
    CHECK(served.received() == before + 21);
    CHECK(served.open() == 1);
    client.leave();
    served.settle();
    CHECK(served.open() == 0);
  }
  SUBCASE("for two seconds") {
    served.after(2s - 1ns);
    CHECK(served.open() == 1);
    served.after(100ms);
    CHECK(served.open() == 0);
  }
  SUBCASE("whatever still comes") {
    for (int i = 0; i < 19; ++i) {
      client.send("more");
      served.after(100ms);
    }
    CHECK(served.received() == before + 19 * 4);
    CHECK(served.open() == 1);
    served.after(200ms);
    CHECK(served.open() == 0);
  }
  SUBCASE("up to 4 MiB") {
    const std::string piece(65536, 'x');
    for (int i = 0; i < 64; ++i) {
      CHECK(served.open() == 1);
      client.send(piece);
      served.settle();
    }
    CHECK(served.received() == before + (4 << 20));
    CHECK(served.open() == 1);
    client.send("x");
    served.settle();
    CHECK(served.open() == 0);
  }
  CHECK(served.seen() == "abandon");
}

TEST_CASE("http connection end: what is thrown away leaves other connections their turns") {
  Served served;
  Client refused = served.connect(), other = served.connect();
  refused.send("POST /refuse HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n");
  served.settle();
  const uint64_t before = served.received();
  refused.send(std::string(100000, 'x'));
  served.run_once();
  CHECK(served.received() <= before + 2 * 4096);
  other.get("/soon");
  served.run_once();
  CHECK(other.answer().body == "soon");
  for (int i = 0; i < 3; ++i) served.settle();
  CHECK(served.received() - before > 100000);
}

TEST_CASE("http connection end: the end of the thread closes all, and waits for threads that compute") {
  Served served;
  Client idle = served.connect(), run = served.connect(), task = served.connect();
  run.get("/run");
  task.get("/task");
  served.settle();
  served.seen();
  served.stream(1).keep_computing();
  std::thread other([&] {
    while (!served.abandoned) std::this_thread::yield();
    served.stream(1).let_go();
  });
  served.io.stop();
  other.join();
  CHECK(served.seen() == "abandon, abandon, abandon, take back, gone, gone, gone");
  CHECK(idle.ended());
  CHECK(run.ended());
  CHECK(task.ended());
}

}  // namespace sconce::server::http
