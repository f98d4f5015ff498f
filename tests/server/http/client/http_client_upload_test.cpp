// HttpClient: bodies that the caller sends piece by piece.
#include <doctest/doctest.h>

#include <atomic>
#include <stdexcept>

#include "server/http/client/http_client.h"
#include "tests/errors.h"
#include "tests/server/http/client/scripted_server.h"

namespace sconce::server::http {

using namespace std::chrono_literals;
using namespace test;

TEST_CASE("http client: a body is sent piece by piece") {
  const std::string piece(300'000, 'p');
  HttpClient client;
  std::string head, body;
  SUBCASE("after an invitation") {
    Scripted server([&](Peer& peer) {
      head = peer.head();
      peer.write("HTTP/1.1 100 Continue\r\n\r\n");
      body = peer.read(3 * piece.size());
      peer.answer("taken");
    });
    REQUIRE(client.begin(server.request(), 3 * piece.size(), {}));
    for (int i = 0; i < 3; ++i) CHECK(client.send(bytes_of(piece)));
    const Answer answer = client.answer(10s);
    CHECK(answer.body == "taken");
    CHECK(answer.delivered);
    CHECK(body == piece + piece + piece);
    CHECK(head.starts_with("POST / HTTP/1.1\r\n"));
    CHECK(contains(head, "\r\nContent-Length: 900000\r\n"));
    CHECK(contains(head, "\r\nExpect: 100-continue\r\n"));
  }
  SUBCASE("without an invitation, after a second") {
    Scripted server([&](Peer& peer) {
      head = peer.head();
      body = peer.read(5);
      peer.answer("taken");
    });
    REQUIRE(client.begin(server.request(), 5, {}));
    CHECK(client.send(bytes_of("piece")));
    CHECK(client.answer(10s).body == "taken");
    CHECK(body == "piece");
  }
  SUBCASE("unless it is empty") {
    Scripted server([&](Peer& peer) {
      head = peer.head();
      peer.answer("taken");
    });
    CHECK(client.begin(server.request(), 0, {}));
    CHECK(client.answer(10s).body == "taken");
  }
  SUBCASE("refused before the first byte") {
    Scripted server([&](Peer& peer) {
      peer.head();
      peer.answer("busy", "409 Conflict");
    });
    CHECK_FALSE(client.begin(server.request(), piece.size(), {}));
    const Answer answer = client.answer(10s);
    CHECK(answer.status == 409);
    CHECK(answer.body == "busy");
    CHECK_FALSE(answer.delivered);
  }
  SUBCASE("refused meanwhile") {
    Scripted server([&](Peer& peer) {
      peer.head();
      peer.write("HTTP/1.1 100 Continue\r\n\r\n");
      peer.read(piece.size());
      peer.answer("wrong", "400 Bad Request");
      while (!peer.ended()) peer.read(1);
    });
    REQUIRE(client.begin(server.request(), 100'000 * piece.size(), {}));
    int sent = 0;
    while (sent < 100'000 && client.send(bytes_of(piece))) ++sent;
    CHECK(sent < 100'000);
    const Answer answer = client.answer(10s);
    CHECK(answer.status == 400);
    CHECK(answer.body == "wrong");
    CHECK_FALSE(answer.delivered);
  }
  SUBCASE("to a server that leaves meanwhile") {
    Scripted server([&](Peer& peer) {
      peer.head();
      peer.write("HTTP/1.1 100 Continue\r\n\r\n");
      peer.read(piece.size());
    });
    REQUIRE(client.begin(server.request(), 100'000 * piece.size(), {}));
    int sent = 0;
    while (sent < 100'000 && client.send(bytes_of(piece))) ++sent;
    CHECK(sent < 100'000);
    const Answer answer = client.answer(10s);
    CHECK_FALSE(answer.problem.empty());
    CHECK_FALSE(answer.delivered);
  }
  SUBCASE("to a server that reads nothing") {
    std::atomic<bool> over{false};
    HttpClient patient({}, {.silence = 200ms});
    Scripted server([&](Peer& peer) {
      peer.head();
      peer.write("HTTP/1.1 100 Continue\r\n\r\n");
      over.wait(false);
    });
    REQUIRE(patient.begin(server.request(), 100'000 * piece.size(), {}));
    int sent = 0;
    while (sent < 100'000 && patient.send(bytes_of(piece))) ++sent;
    CHECK(patient.answer(10s).problem == "no answer: nothing happened for too long");
    over = true;
    over.notify_all();
  }
  SUBCASE("until the caller gives up") {
    Scripted server([&](Peer& peer) {
      peer.head();
      peer.write("HTTP/1.1 100 Continue\r\n\r\n");
      CHECK(peer.read(2 * piece.size()).size() <= piece.size());
    });
    HttpClient leaving;
    REQUIRE(leaving.begin(server.request(), 2 * piece.size(), {}));
    CHECK(leaving.send(bytes_of(piece)));
  }
  // The next request is not disturbed by this one.
  Scripted server([](Peer& peer) {
    peer.head();
    peer.answer("x");
  });
  CHECK(client.ask(server.request()).ok());
}

}  // namespace sconce::server::http
