// The states of HttpConnection: every arrow of the diagram in http_connection.h. What ends a connection is in
// http_connection_end_test.cpp, times and limits are in http_connection_limits_test.cpp.
#include "server/http/connections/http_connection.h"

#include <doctest/doctest.h>

#include <string>
#include <thread>
#include <vector>

#include "tests/server/http/connections/served.h"

namespace sconce::server::http {

using namespace sconce::server::test;
using namespace std::chrono_literals;

namespace {

std::string bodies(const std::vector<Answer>& answers) {
  std::string text;
  for (const Answer& answer : answers) text += (text.empty() ? "" : " ") + answer.body;
  return text;
}

std::string echo(const std::string& body) {
  return "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

}  // namespace

TEST_CASE("http connection: a request is answered in one iteration, and the connection waits for the next") {
  Served served;
  Client client = served.connect();
  CHECK(served.stream().peer() == "192.0.2.7:50000");
  for (const std::string body : {"first", "again", "other and longer"}) {
    client.post("/echo", body);
    served.run_once();
    CHECK(served.seen() == "begin /echo, dispatch " + std::to_string(body.size()) + ", count 200, end");
    const Answer answer = client.answer();
    CHECK(answer.status == 200);
    CHECK(answer.body == body);
    CHECK_FALSE(answer.has("Connection: close"));
    CHECK_FALSE(client.ended());
  }
  CHECK(served.open() == 1);
}

TEST_CASE("http connection: bytes are counted as they come and go") {
  Served served;
  Client client = served.connect();
  const std::string request = echo("abc");
  client.send(request);
  served.settle();
  CHECK(served.received() == request.size());
  CHECK(served.sent() == client.take().size());
  CHECK(served.counters[0].accepted == 1);
  CHECK(served.closed() == 0);
}

TEST_CASE("http connection: a request may come byte by byte") {
  Served served;
  Client client = served.connect();
  for (const char byte : echo("abc") + echo("de")) {
    client.send({&byte, 1});
    served.run_once();
  }
  CHECK(served.seen() == "begin /echo, dispatch 3, count 200, end, begin /echo, dispatch 2, count 200, end");
  CHECK(bodies(client.answers()) == "abc de");
}

TEST_CASE("http connection: a large body is read in several turns, so that others have theirs") {
  Served served;
  Client large = served.connect(), small = served.connect();
  const std::string body(100000, 'x');
  large.post("/echo", body);
  served.run_once();
  CHECK(served.seen() == "begin /echo");
  CHECK(served.received() < body.size());
  small.post("/echo", "y");
  served.run_once();
  CHECK(small.answer().body == "y");
  served.settle();
  CHECK(large.answer().body == body);
}

TEST_CASE("http connection: pipelined requests are answered in order, one after the other") {
  Served served;
  Client client = served.connect();
  client.send(echo("a") + echo("bc") + echo("d"));
  served.run_once();
  CHECK(served.seen() ==
        "begin /echo, dispatch 1, count 200, end, begin /echo, dispatch 2, count 200, end, "
        "begin /echo, dispatch 1, count 200, end");
  CHECK(bodies(client.answers()) == "a bc d");
}

TEST_CASE("http connection: after 16 pipelined requests others have a turn") {
  Served served;
  Client many = served.connect(), one = served.connect();
  std::string requests;
  for (int i = 0; i < 20; ++i) requests += echo("a");
  many.send(requests);
  one.send(echo("b"));
  served.run_once();
  CHECK(many.answers().size() == 16);
  CHECK(one.answer().body == "b");
  served.run_once();
  CHECK(many.answers().size() == 4);
}

TEST_CASE("http connection: a head that began behind another request is moved to the front of the buffer") {
  Served served;
  Client client = served.connect();
  const std::string fields = "X-Long: " + std::string(3500, 'l') + "\r\n";
  client.send(echo(std::string(1000, 'a')) + "GET /soon HTTP/1.1\r\nHost: x\r\n" + fields + "\r\n");
  served.settle();
  CHECK(bodies(client.answers()) == std::string(1000, 'a') + " soon");
}

TEST_CASE("http connection: answers of one iteration leave together, unless a run took long") {
  Served served;
  Client a = served.connect(), b = served.connect();
  a.send(echo("a"));
  b.send(echo("b"));
  served.run_once();
  CHECK(served.seen() == "begin /echo, dispatch 1, count 200, begin /echo, dispatch 1, count 200, end, end");
  CHECK(a.answer().body == "a");
  CHECK(b.answer().body == "b");
  a.get("/slow");
  b.get("/slow");
  served.run_once();
  CHECK(served.seen() == "begin /slow, dispatch 0, count 200, end, begin /slow, dispatch 0, count 200, end");
}

TEST_CASE("http connection: a HEAD request has the head of its answer and no body") {
  Served served;
  Client client = served.connect();
  client.send("HEAD /soon HTTP/1.1\r\nHost: x\r\n\r\n");
  served.run_once();
  const std::string answer = client.take();
  CHECK(answer.find("Content-Length: 4\r\n") != std::string::npos);
  CHECK(answer.ends_with("\r\n\r\n"));
  client.get("/soon");
  served.run_once();
  CHECK(client.answer().body == "soon");
}

TEST_CASE("http connection: it stays open after an answer if the client can and wants to") {
  const std::string keep = "Connection: keep-alive\r\n", close = "Connection: close\r\n";
  struct {
    const char* version;
    std::string fields;
    bool stays;
  } const cases[] = {{"1.1", "", true},  {"1.1", keep, true}, {"1.1", close, false},
                     {"1.0", "", false}, {"1.0", keep, true}, {"1.0", close, false}};
  for (const auto& one : cases) {
    CAPTURE(one.version);
    CAPTURE(one.fields);
    Served served;
    Client client = served.connect();
    client.send(std::string("GET /soon HTTP/") + one.version + "\r\nHost: x\r\n" + one.fields + "\r\n");
    served.run_once();
    const Answer answer = client.answer();
    CHECK(answer.body == "soon");
    CHECK(answer.has(close) == !one.stays);
    CHECK(answer.has(keep) == (one.stays && one.version == std::string("1.0")));
    CHECK(client.ended() == !one.stays);
    CHECK(served.open() == (one.stays ? 1 : 0));
    CHECK(served.seen() == std::string("begin /soon, count 200, end") + (one.stays ? "" : ", abandon"));
  }
}

TEST_CASE("http connection: requests behind the last one are not answered") {
  Served served;
  Client client = served.connect();
  client.get("/soon", "Connection: close\r\n");
  client.get("/soon");
  served.settle();
  CHECK(client.answers().size() == 1);
  CHECK(served.seen() == "begin /soon, count 200, end, abandon");
}

TEST_CASE("http connection: an answer larger than the socket takes goes on when the client has taken some") {
  Served served;
  Client client = served.connect();
  client.get("/big");
  served.settle();
  CHECK(served.seen() == "begin /big, dispatch 0, count 200");
  std::string all;
  for (int i = 0; i < 1000 && all.size() < (8 << 20); ++i) {
    all += client.take(1 << 20);
    served.run_once();
  }
  all += client.take();
  CHECK(served.seen() == "end");
  CHECK(all.size() == served.sent());
  CHECK(all.size() - all.find("\r\n\r\n") - 4 == 8 << 20);
  client.get("/soon");
  served.run_once();
  CHECK(client.answer().body == "soon");
}

TEST_CASE("http connection: a lent request is answered after its notice") {
  Served served;
  Client client = served.connect();
  for (const char* const target : {"/run", "/task", "/queue"}) {
    CAPTURE(target);
    client.post(target, "abc");
    served.settle();
    CHECK(served.seen() == std::string("begin ") + target + ", dispatch 3");
    CHECK(client.take() == "");
    served.stream().let_go("done");
    served.run_once();
    CHECK(served.seen() == "resume, count 200, end");
    CHECK(client.answer().body == "done");
  }
}

TEST_CASE("http connection: notices of many threads are all passed on") {
  Served served;
  constexpr size_t kClients = 40;
  std::vector<Client> clients;
  for (size_t i = 0; i < kClients; ++i) {
    clients.push_back(served.connect());
    clients.back().get("/run");
  }
  served.settle();
  served.seen();
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kClients; ++i) threads.emplace_back([&, i] { served.stream(i).let_go(std::to_string(i)); });
  for (size_t i = 0; i < kClients; ++i) threads[i].join();
  served.run_once();
  for (size_t i = 0; i < kClients; ++i) CHECK(clients[i].answer().body == std::to_string(i));
}

TEST_CASE("http connection: the next request is read ahead while another thread has this one, and waits") {
  Served served;
  Client client = served.connect();
  client.get("/run");
  served.settle();
  const uint64_t before = served.received();
  const std::string next = echo("next");
  client.send(next);
  served.settle();
  CHECK(served.received() == before + next.size());
  CHECK(served.seen() == "begin /run, dispatch 0");
  served.stream().let_go("run");
  served.run_once();
  CHECK(served.seen() == "resume, count 200, end, begin /echo, dispatch 4, count 200, end");
  CHECK(bodies(client.answers()) == "run next");
}

TEST_CASE("http connection: no more is read ahead than there is room for, and the rest is read later") {
  Served served;
  Client client = served.connect();
  client.get("/run");
  served.settle();
  std::string requests;
  for (int i = 0; i < 200; ++i) requests += echo("a");
  client.send(requests);
  served.settle();
  CHECK(served.received() == 4096);
  served.stream().let_go("run");
  for (int i = 0; i < 5; ++i) served.settle();
  CHECK(client.answers().size() == 201);
}

TEST_CASE("http connection: nothing is read while another thread may read from the socket") {
  Served served;
  Client client = served.connect();
  client.post("/task", "abc");
  served.settle();
  const uint64_t before = served.received();
  client.send(echo("next"));
  served.settle();
  CHECK(served.received() == before);
  served.stream().let_go("task");
  served.run_once();
  CHECK(bodies(client.answers()) == "task next");
}

TEST_CASE("http connection: an answer in pieces goes as its pieces come") {
  Served served;
  Client client = served.connect();
  client.get("/pieces");
  served.settle();
  CHECK(client.take() == "");
  served.seen();
  served.stream().add_piece("one");
  served.run_once();
  CHECK(served.seen() == "resume, count 200, next");
  Answer answer = client.answer();
  CHECK(answer.has("Transfer-Encoding: chunked"));
  CHECK(answer.body == "one");
  CHECK_FALSE(answer.whole);
  served.stream().add_piece("two");
  served.run_once();
  CHECK(served.seen() == "resume, next");
  CHECK(client.take() == "00000003\r\ntwo\r\n");
  client.send(echo("after"));  // is read ahead
  served.stream().queue_piece("three");
  served.stream().add_piece("four", true);
  served.run_once();
  CHECK(served.seen() == "resume, next, end, begin /echo, dispatch 5, count 200, end");
  const std::string rest = client.take();
  CHECK(rest.starts_with("00000005\r\nthree\r\n00000004\r\nfour\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n"));
  CHECK(rest.ends_with("\r\n\r\nafter"));
}

TEST_CASE("http connection: the last piece may be empty, and the only one") {
  Served served;
  Client client = served.connect();
  client.get("/pieces");
  served.settle();
  served.stream().add_piece("", true);
  served.run_once();
  const Answer answer = client.answer();
  CHECK(answer.body == "");
  CHECK(answer.whole);
}

TEST_CASE("http connection: an empty piece does not end an answer") {
  Served served;
  Client client = served.connect();
  client.get("/pieces");
  served.settle();
  for (const char* const piece : {"one", "", "two"}) {
    served.stream().add_piece(piece);
    served.run_once();
  }
  served.stream().add_piece("", true);
  served.run_once();
  const Answer answer = client.answer();
  CHECK(answer.body == "onetwo");
  CHECK(answer.whole);
}

TEST_CASE("http connection: for HTTP/1.0 pieces are the body, which ends with the connection") {
  Served served;
  Client client = served.connect();
  client.send("GET /pieces HTTP/1.0\r\n\r\n");
  served.settle();
  served.stream().queue_piece("one");
  served.stream().add_piece("two", true);
  served.settle();
  const Answer answer = client.answer();
  CHECK_FALSE(answer.has("chunked"));
  CHECK(answer.body == "onetwo");
  CHECK(client.ended());
}

TEST_CASE("http connection: a feed tells at each tick what there is, and no thread has it meanwhile") {
  Served served;
  Client client = served.connect();
  client.get("/feed");
  served.settle();
  CHECK(served.seen() == "begin /feed, dispatch 0, count 200, next");
  CHECK(client.answer().body == "hello\n");
  served.after(100ms);
  CHECK(served.seen() == "resume");
  CHECK(client.take() == "");
  served.stream().tell("news\n");
  served.settle();
  CHECK(client.take() == "");
  served.after(100ms);
  CHECK(served.seen() == "resume, next");
  CHECK(client.take() == "00000005\r\nnews\n\r\n");
  served.after(1h);  // it has no deadline
  CHECK(served.seen() == "resume");
  CHECK_FALSE(client.ended());
}

TEST_CASE("http connection: what a request throws is answered, and the next request is read") {
  Served served;
  Client client = served.connect();
  client.get("/throw");
  served.settle();
  CHECK(served.seen() == "begin /throw, dispatch 0, fail, count 500, end");
  CHECK(client.answer().body == "problem");
  client.get("/throw-first");
  served.settle();
  CHECK(served.seen() == "begin /throw-first, fail, count 500, end");
  CHECK(client.answer().body == "first");
  client.get("/run");
  served.settle();
  served.stream().throw_problem();
  served.run_once();
  CHECK(served.seen() == "begin /run, dispatch 0, resume, fail, count 500, end");
  CHECK(client.answer().body == "problem of a thread");
  client.send(echo("after"));
  served.run_once();
  CHECK(client.answer().body == "after");
}

TEST_CASE("http connection: before the body was read, what a request throws ends the connection too") {
  Served served;
  Client client = served.connect();
  client.send("POST /throw-first HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n");
  served.settle();
  CHECK(client.answer().has("Connection: close"));
  CHECK(client.ended());
  CHECK(served.open() == 1);  // lingers
}

TEST_CASE("http connection: after part of an answer a problem ends the connection, since no other answer can follow") {
  Served served;
  Client client = served.connect();
  client.get("/pieces");
  served.settle();
  served.stream().add_piece("one");
  served.run_once();
  served.seen();
  served.stream().throw_problem();
  served.run_once();
  CHECK(served.seen() == "resume, abandon");
  CHECK_FALSE(client.answer().whole);
  CHECK(client.ended());
}

TEST_CASE("http connection: without memory for an answer, or for words about a problem, it is closed") {
  for (const char* const target : {"/hang", "/throw-twice"}) {
    CAPTURE(target);
    Served served;
    Client client = served.connect();
    client.get(target);
    served.settle();
    CHECK(served.seen().ends_with("abandon"));
    CHECK(client.ended());
    CHECK(served.closed() == 1);
  }
}

TEST_CASE("http connection: an answer that another thread has sent is counted, and the connection closed") {
  Served served;
  Client client = served.connect();
  client.get("/sent");
  served.settle();
  served.seen();
  served.stream().let_go();
  served.run_once();
  CHECK(served.seen() == "resume, count 200, end, abandon");
  CHECK(served.sent() == 100);
  CHECK(client.ended());
}

TEST_CASE("http connection: bytes that are no request are refused, and the connection ends") {
  Served served;
  Client client = served.connect();
  client.send("nonsense\r\n\r\n");
  served.settle();
  CHECK(served.seen() == "refuse 400, count 400, end");
  const Answer answer = client.answer();
  CHECK(answer.status == 400);
  CHECK(answer.has("Connection: close"));
  CHECK(client.ended());
}

TEST_CASE("http connection: a head larger than max_header_bytes is refused, also in pieces") {
  for (const size_t piece : {5000, 1000, 7}) {
    CAPTURE(piece);
    Served served;
    Client client = served.connect();
    const std::string head = "GET / HTTP/1.1\r\nHost: x\r\nX-Long: " + std::string(4200, 'l');
    for (size_t at = 0; at < head.size(); at += piece) {
      client.send(head.substr(at, piece));
      served.run_once();
    }
    served.settle();
    CHECK(served.seen() == "refuse 431, count 431, end");
    CHECK(client.answer().status == 431);
  }
}

TEST_CASE("http connection: a body that is too long is refused before it is read, or where it becomes too long") {
  SUBCASE("longer than the stream allows") {
    Served served;
    Client client = served.connect();
    client.post("/small", "12345");
    served.settle();
    CHECK(served.seen() == "begin /small, refuse 413, count 413, end");
    CHECK(client.answer().status == 413);
    CHECK(client.ended());
  }
  SUBCASE("not longer") {
    Served served;
    Client client = served.connect();
    client.post("/small", "1234");
    client.send("POST /small HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n");
    served.settle();
    CHECK(bodies(client.answers()) == "1234 abcd");
  }
  SUBCASE("in chunks") {
    Served served;
    Client client = served.connect();
    client.send("POST /small HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
    served.settle();
    CHECK(served.seen() == "begin /small");
    client.send("2\r\nde\r\n");
    served.settle();
    CHECK(served.seen() == "refuse 413, count 413, end");
    CHECK(client.answer().status == 413);
    CHECK(client.ended());
  }
  SUBCASE("longer than max_body_bytes, but not for administration") {
    ServerConfig config = Served::defaults();
    config.max_body_bytes = 1000;
    Served served(config);
    const std::string body(1001, 'x');
    Client of_public = served.connect(), of_admin = served.connect(kAdmin);
    of_public.post("/echo", body);
    of_admin.post("/echo", body);
    served.settle();
    CHECK(of_public.answer().status == 413);
    CHECK(of_admin.answer().body == body);
  }
}

TEST_CASE("http connection: a client that waits for it is told to send its body, once that is admitted") {
  const std::string expect = "Host: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n";
  Served served;
  Client client = served.connect();
  client.send("POST /echo HTTP/1.1\r\n" + expect);
  served.settle();
  CHECK(client.take() == "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("hello");
  served.run_once();
  CHECK(client.answer().body == "hello");
  client.send("POST /echo HTTP/1.1\r\n" + expect + "howdy");  // does not wait
  served.run_once();
  CHECK(client.answer().body == "howdy");
  client.send("POST /refuse HTTP/1.1\r\n" + expect);
  served.run_once();
  CHECK(client.answer().status == 403);
  CHECK(client.ended());
}

TEST_CASE("http connection: a client that does not take the invitation for its body is left") {
  Served served;
  Client client = served.connect();
  client.leave_answers();
  client.send("POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
  served.run_once();
  CHECK(served.seen() == "begin /echo, abandon");
  CHECK(served.closed() == 1);
}

TEST_CASE("http connection: one empty line before a request is skipped, a second one is refused") {
  Served served;
  Client client = served.connect();
  client.send("\r\n" + echo("a"));
  served.run_once();
  CHECK(client.answer().body == "a");
  client.send("\r\n\r\n" + echo("b"));
  served.run_once();
  CHECK(client.answer().status == 400);
}

}  // namespace sconce::server::http
