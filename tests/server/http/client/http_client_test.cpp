// HttpClient against a server that follows a script.
#include "server/http/client/http_client.h"

#include <doctest/doctest.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <stdexcept>

#include "tests/errors.h"
#include "tests/files.h"
#include "tests/server/http/client/scripted_server.h"
#include "tests/server/http/connections/test_certificate.h"

namespace sconce::server::http {
namespace {

using namespace std::chrono_literals;
using namespace test;

// A port of this machine on which nobody listens.
uint16_t free_port() {
  const Descriptor probe(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  REQUIRE(::bind(probe.get(), reinterpret_cast<sockaddr*>(&address), size) == 0);
  REQUIRE(::getsockname(probe.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
  return ntohs(address.sin_port);
}

}  // namespace

TEST_CASE("http client: a request and its answer") {
  std::string head;
  Scripted server([&](Peer& peer) {
    head = peer.head();
    CHECK(peer.read(4) == "body");
    peer.write(
        "HTTP/1.1 200 OK\r\nX-Field: a value \r\nTransfer-Encoding: chunked\r\n\r\n3\r\nans\r\n3\r\nwer\r\n0\r\n\r\n");
  });
  HttpRequest request = server.request("/a//../b?c=%2F");
  request.body = "body";
  request.fields = {"X-Asked: yes", "Content-Type: text/plain"};
  HttpClient client;
  const Answer answer = client.ask(request);
  CHECK(answer.problem == "");
  CHECK(answer.ok());
  CHECK(answer.status == 200);
  CHECK(answer.body == "answer");
  CHECK(answer.field("x-field") == "a value");
  CHECK(answer.delivered);
  CHECK(head.starts_with("POST /a//../b?c=%2F HTTP/1.1\r\n"));
  CHECK(contains(head, "\r\nX-Asked: yes\r\n"));
  CHECK(contains(head, "\r\nContent-Length: 4\r\n"));
  CHECK_FALSE(contains(head, "Expect"));
}

TEST_CASE("http client: repeatable requests share a connection, others have one each") {
  Scripted server([](Peer& peer) {
    while (!peer.head().empty()) peer.answer("x");
  });
  HttpClient client;
  HttpRequest request = server.request();
  SUBCASE("repeatable") {
    request.repeatable = true;
    for (int i = 0; i < 3; ++i) CHECK(client.ask(request).body == "x");
    CHECK(server.connections == 1);
  }
  SUBCASE("after an error of the server") {
    request.repeatable = true;
    CHECK(client.ask(request).ok());
    HttpRequest wrong = request;
    wrong.url = "ftp://127.0.0.1/";
    CHECK_FALSE(client.ask(wrong).ok());
    CHECK(client.ask(request).ok());
  }
}

TEST_CASE("http client: a request that must not be sent twice is not") {
  std::atomic<int> posts{0};
  Scripted server([&](Peer& peer) {
    const std::string head = peer.head();
    if (head.starts_with("POST")) {
      ++posts;
      return;  // without an answer
    }
    peer.answer("x");
  });
  HttpClient client;
  HttpRequest get = server.request(), post = server.request();
  get.repeatable = true;
  post.method = "POST";
  CHECK(client.ask(get).ok());
  const Answer answer = client.ask(post);
  CHECK(answer.problem == "no answer: the server closed the connection");
  CHECK(answer.status == 0);
  CHECK(answer.delivered);
  CHECK(posts == 1);
  // The server has closed each connection behind its answer.
  for (int i = 0; i < 3; ++i) CHECK(client.ask(get).ok());
}

TEST_CASE("http client: servers that cannot be reached") {
  HttpClient client({}, {.connect = 5s});
  HttpRequest request;
  request.direct = true;
  request.url = "http://127.0.0.1:" + std::to_string(free_port()) + "/";
  Answer answer = client.ask(request);
  CHECK(answer.problem == "cannot connect: Connection refused");
  CHECK(answer.reason() == answer.problem);
  CHECK(answer.temporary);
  CHECK_FALSE(answer.delivered);
  request.url = "http://nowhere.invalid/";
  answer = client.ask(request);
  CHECK(answer.problem == "cannot find nowhere.invalid");
  for (const char* url : {"file:///etc/hostname", "ftp://127.0.0.1/", "http://a b/", ""}) {
    request.url = url;
    answer = client.ask(request);
    CHECK_MESSAGE(!answer.problem.empty(), url);
    CHECK(answer.body.empty());
    CHECK_FALSE(answer.temporary);
  }
}

TEST_CASE("http client: an address in place of the host's name") {
  std::string head;
  Scripted server([&](Peer& peer) {
    head = peer.head();
    peer.answer("x");
  });
  HttpRequest request;
  request.direct = true;
  request.url = "http://pod.invalid:" + std::to_string(server.port) + "/";
  request.address = "127.0.0.1";
  HttpClient client;
  CHECK(client.ask(request).ok());
  CHECK(contains(head, "\r\nHost: pod.invalid:" + std::to_string(server.port) + "\r\n"));
}

TEST_CASE("http client: proxies of the environment, unless the request is direct") {
  std::string head;
  Scripted server([&](Peer& peer) {
    head = peer.head();
    peer.answer("x");
  });
  for (const char* name : {"no_proxy", "NO_PROXY"}) ::unsetenv(name);
  ::setenv("http_proxy", ("http://127.0.0.1:" + std::to_string(free_port())).c_str(), 1);
  HttpClient client;
  HttpRequest request = server.request();
  request.direct = false;
  CHECK(contains(client.ask(request).problem, "cannot connect"));
  request.direct = true;
  CHECK(client.ask(request).ok());
  ::setenv("http_proxy", server.url("").c_str(), 1);
  request.url = "http://elsewhere.invalid/x";
  request.direct = false;
  CHECK(client.ask(request).ok());
  CHECK(head.starts_with("GET http://elsewhere.invalid/x HTTP/1.1\r\n"));
  ::unsetenv("http_proxy");
}

TEST_CASE("http client: a silent server is given up") {
  const auto hears = [](const std::string& said) {
    Scripted server([&](Peer& peer) {
      peer.head();
      peer.write(said);
      CHECK(peer.ended());  // the client leaves
    });
    HttpClient client({}, {.silence = 100ms});
    return client.ask(server.request());
  };
  Answer answer = hears("");
  CHECK(answer.problem == "no answer: nothing happened for too long");
  CHECK(answer.delivered);
  CHECK(answer.temporary);
  CHECK(hears("HTTP/1.1 200 OK\r\n").problem == "no answer: nothing happened for too long");
  CHECK(hears("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab").problem == "nothing happened for too long");
}

TEST_CASE("http client: an answer that ends early") {
  const auto hears = [](const std::string& said) {
    Scripted server([&](Peer& peer) {
      peer.head();
      peer.write(said);
    });
    return HttpClient().ask(server.request());
  };
  CHECK(hears("").problem == "no answer: the server closed the connection");
  CHECK(contains(hears("HTTP/1.1 200 OK\r\nContent-Le").problem, "no answer"));
  const Answer cut = hears("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab");
  CHECK(cut.problem == "the server closed the connection");
  CHECK(cut.temporary);
  CHECK_FALSE(cut.ok());
  CHECK_FALSE(hears("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n").ok());
  CHECK(hears("HTTP/1.1 200 OK\r\n\r\nto the end").body == "to the end");
  CHECK(hears(std::string("\0\0\x12\x04", 4)).problem.ends_with("does not speak HTTP/1.1"));
}

TEST_CASE("http client: hostile answers are bounded") {
  SUBCASE("a header without end") {
    for (const std::string& line :
         {"X: " + std::string(1000, 'a') + "\r\n", std::string("HTTP/1.1 100 Continue\r\n\r\n")}) {
      Scripted server([&](Peer& peer) {
        peer.head();
        if (!line.starts_with("HTTP")) peer.write("HTTP/1.1 200 OK\r\n");
        while (peer.write(line)) {
        }
      });
      CHECK_FALSE(HttpClient().ask(server.request()).problem.empty());
    }
  }
  SUBCASE("a control character") {
    Scripted server([](Peer& peer) {
      peer.head();
      peer.write("HTTP/1.1 200 OK\r\nETag: a\rX-Evil: 1\r\nContent-Length: 0\r\n\r\n");
    });
    CHECK(HttpClient().ask(server.request()).problem == "the head of the answer has a control character");
  }
  SUBCASE("a body without end") {
    Scripted server([](Peer& peer) {
      peer.head();
      const std::string block(1 << 20, 'x');
      peer.write("HTTP/1.1 200 OK\r\n\r\n");
      while (peer.write(block)) {
      }
    });
    const Answer answer = HttpClient().ask(server.request());
    CHECK(answer.problem == "the answer is larger than 64 MiB");
    CHECK(answer.body.size() <= HttpClient::kMaxBody);
  }
  SUBCASE("an error's text without end") {
    Scripted server([](Peer& peer) {
      peer.head();
      const std::string block(1 << 20, 'x');
      peer.write("HTTP/1.1 403 Forbidden\r\n\r\n");
      while (peer.write(block)) {
      }
    });
    AnswerSink sink;
    sink.body = [](std::span<const std::byte>) -> bool { throw std::logic_error("an error's text is no content"); };
    const Answer answer = HttpClient().ask(server.request(), {}, sink);
    CHECK(answer.problem == "");
    CHECK(answer.status == 403);
    CHECK(answer.body == std::string(HttpClient::kMaxErrorText, 'x'));
  }
}

TEST_CASE("http client: a redirect is told and not followed") {
  Scripted server([](Peer& peer) {
    peer.head();
    peer.write("HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 4\r\n\r\ntext");
  });
  const Answer answer = HttpClient().ask(server.request());
  CHECK(answer.status == 302);
  CHECK(answer.redirect == server.url("/elsewhere"));
  CHECK(server.connections == 1);
}

TEST_CASE("http client: a sink receives the header, then the body") {
  Scripted server([](Peer& peer) {
    while (!peer.head().empty()) peer.answer(std::string(1'000'000, 'x'));
  });
  HttpClient client;
  HttpRequest request = server.request();
  request.repeatable = true;
  uint64_t length = 0, came = 0;
  AnswerSink sink;
  sink.head = [&](const Answer& head) {
    length = std::stoull(head.field("content-length"));
    return true;
  };
  sink.body = [&](std::span<const std::byte> bytes) {
    CHECK(length == 1'000'000);
    came += bytes.size();
    return true;
  };
  CHECK(client.ask(request, {}, sink).ok());
  CHECK(came == 1'000'000);
  CHECK(client.ask(request, {}, sink).ok());
  CHECK(server.connections == 1);
  SUBCASE("and may stop it") {
    sink.body = [](std::span<const std::byte>) { return false; };
    CHECK(client.ask(request, {}, sink).problem == "stopped");
    sink.head = [](const Answer&) { return false; };
    CHECK(client.ask(request, {}, sink).problem == "stopped");
  }
  SUBCASE("and its exceptions are passed on") {
    sink.body = [](std::span<const std::byte>) -> bool { throw std::runtime_error("of the sink"); };
    CHECK_THROWS_WITH(client.ask(request, {}, sink), "of the sink");
    sink.head = [](const Answer&) -> bool { throw std::runtime_error("of the header"); };
    CHECK_THROWS_WITH(client.ask(request, {}, sink), "of the header");
  }
  CHECK(client.ask(request).ok());
}

TEST_CASE("http client: another thread ends a request") {
  std::atomic<bool> stop{false};
  Scripted server([&](Peer& peer) {
    if (contains(peer.head(), "GET /soon")) return peer.answer("x");
    stop = true;
    CHECK(peer.ended());  // the client leaves
  });
  HttpClient client;
  CHECK(client.ask(server.request(), [&] { return !stop; }).problem == "stopped");
  stop = false;
  CHECK_THROWS_WITH(client.ask(server.request(),
                               [&] {
                                 if (stop) throw std::runtime_error("the program ends");
                                 return true;
                               }),
                    "the program ends");
  CHECK(client.ask(server.request("/soon")).ok());
}

TEST_CASE("http client: TLS") {
  const TempFolder folder;
  const std::string certificate = folder.write("certificate.pem", kTestCertificate).string(),
                    key = folder.write("key.pem", kTestKey).string();
  std::signal(SIGPIPE, SIG_IGN);  // as the program does
  Scripted server(
      [](Peer& peer) {
        while (!peer.head().empty()) peer.answer("secret");
      },
      TlsContext::of_server(certificate, key, {}, "test"));
  HttpRequest request;
  request.direct = true;
  request.url = "https://localhost:" + std::to_string(server.port) + "/";
  request.address = "127.0.0.1";
  SUBCASE("of a trusted server") {
    request.repeatable = true;
    HttpClient client(checked_tls(certificate, {}, {}));
    for (int i = 0; i < 2; ++i) CHECK(client.ask(request).body == "secret");
    CHECK(server.connections == 1);
  }
  SUBCASE("of a stranger") {
    const Answer answer = HttpClient().ask(request);
    CHECK(answer.problem.starts_with("no TLS: the certificate was refused: "));
    CHECK_FALSE(answer.delivered);
  }
  SUBCASE("of another host") {
    request.url = "https://127.0.0.1:" + std::to_string(server.port) + "/";
    CHECK(HttpClient(checked_tls(certificate, {}, {}))
              .ask(request)
              .problem.starts_with("no TLS: the certificate was refused: "));
  }
  SUBCASE("of a server that speaks none") {
    Scripted plain([](Peer& peer) { peer.write("HTTP/1.1 400 Bad Request\r\n\r\n"); });
    request.url = "https://localhost:" + std::to_string(plain.port) + "/";
    CHECK(HttpClient(checked_tls(certificate, {}, {})).ask(request).problem.starts_with("no TLS: "));
  }
}

TEST_CASE("http client: the files of TLS are checked") {
  const TempFolder folder;
  const std::string certificate = folder.write("certificate.pem", kTestCertificate).string(),
                    key = folder.write("key.pem", kTestKey).string(), text = folder.write("text", "none").string(),
                    none = (folder / "none").string();
  CHECK_NOTHROW(checked_tls({}, {}, {}));
  CHECK(checked_tls(certificate, certificate, key).key == key);
  CHECK(contains(error_from(ErrorCode::kIo, [&] { checked_tls(none, {}, {}); }), "cannot be read: " + none));
  CHECK(contains(error_from([&] { checked_tls(text, {}, {}); }), "no certificates in PEM: " + text));
  CHECK(contains(error_from([&] { checked_tls({}, certificate, {}); }), "go together"));
  CHECK(contains(error_from([&] { checked_tls({}, certificate, text); }), "not the certificate's key"));
}

}  // namespace sconce::server::http
