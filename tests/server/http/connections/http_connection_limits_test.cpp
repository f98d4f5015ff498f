// What an HttpConnection allows its client: time in each state, its place among the connections, memory.
#include <doctest/doctest.h>
#include <openssl/ssl.h>

#include <csignal>
#include <memory>
#include <string>

#include "tests/files.h"
#include "tests/server/http/connections/served.h"
#include "tests/server/http/connections/test_certificate.h"

namespace sconce::server::http {

using namespace sconce::server::test;
using namespace std::chrono_literals;

namespace {

// Deadlines of clients are checked at each tick.
constexpr auto kTick = 100ms;

// Times that differ from each other, so that a test sees which one applies.
ServerConfig timed() {
  ServerConfig config = Served::defaults();
  config.tls_handshake_timeout = 7s;
  config.header_timeout = 10s;
  config.body_timeout = 20s;
  config.write_timeout = 30s;
  config.idle_timeout = 40s;
  config.min_rate = 1000;
  return config;
}

// Whether the connection stays until this time has passed, and ends within the tick after it.
bool ends_after(Served& served, Clock::duration time) {
  served.after(time - 1ns);
  const bool stays = served.closed() == 0;
  served.after(kTick);
  return stays && served.closed() == 1;
}

const std::string kBody1000 = "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n";

}  // namespace

TEST_CASE("http connection limits: a client that never sends a byte is left after header_timeout") {
  Served served(timed());
  Client client = served.connect();
  CHECK(ends_after(served, 10s));
  CHECK(client.ended());
  CHECK(served.seen() == "abandon");
}

TEST_CASE("http connection limits: between two requests a client has idle_timeout") {
  Served served(timed());
  Client client = served.connect();
  for (int i = 0; i < 3; ++i) {
    served.after(i == 0 ? 9s : 39s);
    client.get("/soon");
    served.settle();
    CHECK(client.answer().body == "soon");
  }
  CHECK(ends_after(served, 40s));
  CHECK(client.take() == "");
}

TEST_CASE("http connection limits: a head has header_timeout from its first byte, however its bytes come") {
  Served served(timed());
  Client client = served.connect();
  served.after(9s);
  client.send("GET /");
  served.settle();
  served.after(9s);
  client.send("echo HTTP/1.1\r\n");
  served.after(1s - 1ns);
  CHECK(client.take() == "");
  CHECK(served.seen() == "");
  served.after(kTick);
  CHECK(served.seen() == "refuse 408, count 408, end");
  CHECK(client.answer().status == 408);
  CHECK(client.ended());
}

TEST_CASE("http connection limits: a skipped empty line is no first byte") {
  Served served(timed());
  Client client = served.connect();
  served.after(9s);
  client.send("\r\n");
  served.settle();
  CHECK(ends_after(served, 40s));
  CHECK(client.take() == "");
}

TEST_CASE("http connection limits: a body has body_timeout and what its bytes earn at min_rate") {
  Served served(timed());
  Client client = served.connect();
  client.send(kBody1000);
  served.settle();
  served.after(19s);
  client.send(std::string(5000, 'x'));  // 5 s more: 25 s from its beginning
  served.settle();
  served.after(6s - 1ns);
  CHECK(client.take() == "");
  SUBCASE("late") {
    served.after(kTick);
    CHECK(served.seen() == "begin /echo, refuse 408, count 408, end");
    CHECK(client.answer().status == 408);
    CHECK(client.ended());
  }
  SUBCASE("it is never further away than body_timeout") {
    client.send(std::string(100000, 'x'));  // 100 s
    for (int i = 0; i < 3; ++i) served.settle();
    served.after(20s - 1ns);
    CHECK(client.take() == "");
    served.after(kTick);
    CHECK(client.answer().status == 408);
  }
}

TEST_CASE("http connection limits: a run has its deadline to the millisecond, not to the tick") {
  Served served(timed());
  Client client = served.connect();
  served.after(37ms);  // not when a tick is due
  SUBCASE("one that is cancelled leaves the connection open") {
    client.get("/queue");
    served.settle();
    served.seen();
    served.after(15s - 1ns);
    CHECK(served.seen() == "");
    served.after(1ms);
    CHECK(served.seen() == "late, cancel, count 504, end");
    CHECK(client.answer().status == 504);
    client.get("/soon");
    served.run_once();
    CHECK(client.answer().body == "soon");
  }
  SUBCASE("one that goes on ends the connection, which stays until it lets go") {
    client.get("/run");
    served.settle();
    served.seen();
    served.after(15s - 1ns);
    CHECK(served.seen() == "");
    served.after(1ms);
    CHECK(served.seen() == "late, cancel, count 504, end, abandon");
    const Answer answer = client.answer();
    CHECK(answer.status == 504);
    CHECK(answer.has("Connection: close"));
    CHECK(client.ended());
    CHECK(served.closed() == 0);
    served.stream().let_go();
    served.run_once();
    CHECK(served.seen() == "take back");
    CHECK(served.closed() == 1);
  }
}

TEST_CASE("http connection limits: a deadline before the next tick is met too") {
  Served served(timed());
  served.run_time = 5ms;
  Client client = served.connect();
  client.get("/queue");
  served.settle();
  served.after(5ms - 1ns);
  CHECK(client.take() == "");
  served.after(1ms);
  CHECK(client.answer().status == 504);
}

TEST_CASE("http connection limits: what another thread does for administration has no deadline") {
  Served served(timed());
  Client client = served.connect();
  client.get("/task");
  served.settle();
  served.after(24h);
  served.stream().let_go("done");
  served.settle();
  CHECK(client.answer().body == "done");
}

TEST_CASE("http connection limits: a client has write_timeout to take an answer, and what its bytes earn") {
  Served served(timed());
  Client client = served.connect();
  client.get("/big");
  served.settle();
  SUBCASE("takes nothing") {
    CHECK(ends_after(served, 30s));
    CHECK(served.seen() == "begin /big, dispatch 0, count 200, abandon");
  }
  SUBCASE("takes much, then stops") {
    served.after(29s);
    client.take(1 << 20);
    served.settle();
    CHECK(ends_after(served, 30s));
  }
}

TEST_CASE("http connection limits: each piece of an answer has write_timeout anew") {
  Served served(timed());
  Client client = served.connect();
  client.get("/feed");
  served.settle();
  served.after(1h);
  served.stream().tell(std::string(8 << 20, 'x'));
  served.after(kTick);
  CHECK(ends_after(served, 30s));
}

TEST_CASE("http connection limits: a handshake of TLS has tls_handshake_timeout") {
  const TempFolder folder;
  ServerConfig config = timed();
  config.http_tls = TlsMode::kOn;
  config.tls_certificate = folder.write("certificate.pem", kTestCertificate).string();
  config.tls_key = folder.write("key.pem", kTestKey).string();
  std::signal(SIGPIPE, SIG_IGN);  // as the program does
  Served served(config);
  Client client = served.connect();
  SUBCASE("nothing comes") { CHECK(ends_after(served, 7s)); }
  SUBCASE("no TLS comes") {
    client.get("/soon");
    served.settle();
    CHECK(served.closed() == 1);
    CHECK(served.seen() == "abandon");
  }
  SUBCASE("the client leaves") {
    client.leave();
    served.settle();
    CHECK(served.closed() == 1);
  }
  SUBCASE("time is up") {
    served.io.end_clients(true);
    served.settle();
    CHECK(served.closed() == 1);
  }
  SUBCASE("serving ends") {
    served.io.close_idle();
    served.settle();
    CHECK(served.closed() == 0);
    served.after(300ms);
    served.io.close_idle();
    served.settle();
    CHECK(served.closed() == 1);
  }
  SUBCASE("it is done, and requests have their own times") {
    const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free);
    const std::unique_ptr<SSL, decltype(&SSL_free)> tls(SSL_new(context.get()), &SSL_free);
    REQUIRE(SSL_set_fd(tls.get(), client.descriptor()) == 1);
    SSL_set_connect_state(tls.get());
    served.after(6s);
    int shaken = 0;
    for (int i = 0; i < 10 && shaken != 1; ++i) {
      shaken = SSL_do_handshake(tls.get());
      served.run_once();
    }
    CHECK(shaken == 1);
    served.after(9s);
    const std::string request = "GET /soon HTTP/1.1\r\nHost: x\r\n\r\n";
    CHECK(SSL_write(tls.get(), request.data(), static_cast<int>(request.size())) == static_cast<int>(request.size()));
    served.settle();
    CHECK(served.seen() == "begin /soon, count 200, end");
    std::string answer(1000, '\0');
    answer.resize(static_cast<size_t>(std::max(0, SSL_read(tls.get(), answer.data(), 1000))));
    CHECK(answer.ends_with("\r\n\r\nsoon"));
    CHECK(ends_after(served, 40s));
    CHECK(SSL_get_error(tls.get(), SSL_read(tls.get(), answer.data(), 1)) == SSL_ERROR_ZERO_RETURN);
  }
}

TEST_CASE("http connection limits: the connection that has waited longest for its client is the idlest") {
  Served served;
  const auto idlest = [&] {
    const IoThread::Idle idle = served.io.idlest(kPublic);
    return !idle.any ? -1 : (Served::now() - idle.since) / 1ms;
  };
  CHECK(idlest() == -1);
  Client first = served.connect();
  served.after(299ms);
  CHECK(idlest() == -1);  // its request may be on its way
  served.after(1ms);
  CHECK(idlest() == 300);
  CHECK(served.io.idlest(kPublic).between_requests);
  CHECK_FALSE(served.io.idlest(kAdmin).any);
  Client second = served.connect();
  first.get("/soon");
  served.after(400ms);
  CHECK(idlest() == 400);
  // Of both, the first one is answered later.
  first.get("/soon");
  served.settle();
  CHECK(idlest() == 400);
  second.get("/run");
  served.after(10ms);
  CHECK(idlest() == -1);  // it waits for the server
  served.after(390ms);
  CHECK(idlest() == 400);
  first.send("GET /");
  served.settle();
  served.after(999ms);
  CHECK(idlest() == -1);
  served.after(1ms);
  CHECK(idlest() == 1000);
  CHECK_FALSE(served.io.idlest(kPublic).between_requests);
  served.after(9s);
  CHECK(idlest() == -1);  // it was refused just now, and lingers
  CHECK(served.open() == 2);
}

TEST_CASE("http connection limits: one between two requests makes room before one that stalls, and runs never do") {
  Served served;
  Client run = served.connect();
  run.get("/run");
  served.settle();
  Client stalled = served.connect();
  stalled.send("GET /");
  Client big = served.connect();
  big.get("/big");
  served.settle();
  served.after(2s);
  Client idle = served.connect();
  served.after(300ms);
  CHECK(served.open() == 4);
  served.seen();
  served.io.close_idlest(kPublic);
  CHECK(idle.ended());
  CHECK(served.open() == 3);  // at once, or the listener would have another one closed
  served.io.close_idlest(kPublic);
  served.io.close_idlest(kPublic);
  CHECK(stalled.ended());
  CHECK(served.open() == 1);
  served.io.close_idlest(kPublic);
  CHECK(served.open() == 1);
  CHECK(served.seen() == "abandon, abandon, abandon");
  served.stream().let_go("done");
  served.settle();
  CHECK(run.answer().body == "done");
}

TEST_CASE("http connection limits: a feed gives way to the next connection after a second") {
  Served served;
  Client feed = served.connect();
  feed.get("/feed");
  served.settle();
  served.after(999ms);
  CHECK_FALSE(served.io.idlest(kPublic).any);
  served.after(1ms);
  CHECK(served.io.idlest(kPublic).any);
  served.io.close_idlest(kPublic);
  CHECK(served.open() == 0);
}

TEST_CASE("http connection limits: one that makes room is not counted any more, though a thread has its request") {
  Served served;
  Client client = served.connect();
  client.get("/pieces");
  served.settle();
  served.stream().add_piece(std::string(8 << 20, 'x'));
  served.settle();
  served.after(1s);
  served.io.close_idlest(kPublic);
  CHECK(served.open() == 0);
  CHECK(served.closed() == 0);
  served.stream().add_piece("more");
  served.settle();
  CHECK(served.closed() == 1);
}

TEST_CASE("http connection limits: one whose request has come makes no room, but the next idlest does") {
  Served served;
  Client first = served.connect();
  served.after(1s);
  Client second = served.connect();
  served.after(1s);
  first.get("/soon");  // has come, and was not read yet
  served.io.close_idlest(kPublic);
  served.settle();
  CHECK(first.answer().body == "soon");
  CHECK(second.ended());
  CHECK(served.open() == 1);
}

TEST_CASE("http connection limits: when serving ends, idle connections are closed and fresh ones have 300 ms") {
  Served served;
  Client idle = served.connect(), partial = served.connect(), run = served.connect(), feed = served.connect(),
         sent = served.connect();
  partial.send("GET /");
  run.get("/run");
  feed.get("/feed");
  served.after(299ms);
  served.io.close_idle();
  served.settle();
  CHECK(served.open() == 4);
  CHECK(feed.answer().body == "hello\nbye\n");
  CHECK(feed.ended());
  served.pass(1ms);
  served.io.loop().call([&] { sent.get("/soon"); });  // has come, and was not read yet
  served.io.close_idle();
  served.settle();
  CHECK(idle.ended());
  CHECK(sent.answer().body == "soon");
  CHECK_FALSE(partial.ended());
  CHECK_FALSE(run.ended());
  CHECK(served.open() == 3);
}

TEST_CASE("http connection limits: a feed whose client has not taken the last event ends without another") {
  Served served;
  Client feed = served.connect();
  feed.get("/feed");
  served.settle();
  served.stream().tell(std::string(8 << 20, 'x'));
  served.after(kTick);
  served.seen();
  served.io.close_idle();
  served.settle();
  CHECK(served.seen() == "abandon");
  CHECK(served.closed() == 1);
}

TEST_CASE("http connection limits: when time is up, clients that keep the server waiting are closed, others are not") {
  Served served;
  Client idle = served.connect(), partial = served.connect(), big = served.connect(), lingering = served.connect(),
         run = served.connect();
  partial.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab");
  big.get("/big");
  lingering.send("nonsense\r\n\r\n");
  run.get("/run");
  served.settle();
  CHECK(served.open() == 5);
  lingering.take();
  SUBCASE("told") {
    served.io.end_clients(true);
    served.settle();
    CHECK(partial.answer().status == 503);
    CHECK(partial.ended());
    CHECK(served.open() == 2);  // it lingers
    served.io.end_clients(true);
    served.settle();
  }
  SUBCASE("not told") {
    served.io.end_clients(false);
    served.settle();
    CHECK(partial.ended());
  }
  CHECK(served.open() == 1);
  CHECK(idle.ended());
  CHECK(lingering.ended());
  served.stream(4).let_go("done");
  served.settle();
  CHECK(run.answer().body == "done");
}

TEST_CASE("http connection limits: memory of a large request is freed after it, to the last when memory is scarce") {
  Served served;
  Client client = served.connect();
  const auto post = [&](size_t bytes) {
    client.post("/echo", std::string(bytes, 'x'));
    for (int i = 0; i < 3; ++i) served.settle();
    CHECK(client.answer().body.size() == bytes);
  };
  post(100000);
  CHECK(served.memory.used() >= 100000);  // kept for the next request
  served.after(1s);
  CHECK(served.memory.used() >= 100000);
  served.memory.overdraw(10 << 20);  // of 16 MiB: more than half
  served.after(kTick);
  CHECK(served.memory.used() <= (10 << 20) + 16384);
  served.memory.give(10 << 20);
  post(100);  // and it still works
}

TEST_CASE("http connection limits: a body that finds no memory fails its request") {
  Served served;
  Client client = served.connect();
  served.memory.overdraw(16 << 20);
  client.send(kBody1000);
  served.settle();
  CHECK(served.seen() == "begin /echo, fail, count 500, end");
  CHECK(client.answer().status == 500);
  CHECK(client.ended());
  served.memory.give(16 << 20);
}

TEST_CASE("http connection limits: with many connections, one that finds no room for a head is refused") {
  Served served;
  Client first = served.connect(), second = served.connect();
  served.memory.count_small(true);
  served.memory.overdraw(20 << 20);  // a quarter more than the limit
  first.get("/soon");
  served.settle();
  CHECK(served.seen() == "refuse 503, count 503, end");
  CHECK(first.answer().status == 503);
  CHECK(served.open() == 2);  // what it has sent is thrown away, or it would see a reset
  served.memory.give(20 << 20);
  second.get("/soon");
  served.settle();
  CHECK(second.answer().body == "soon");
  CHECK(served.memory.used() == 4096);
  served.after(kTick);  // an idle connection has no buffer
  CHECK(served.memory.used() == 0);
}

}  // namespace sconce::server::http
