// HttpClient against a server that follows a script.
#include "server/http/client/http_client.h"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <thread>

#include "server/http/client/admin_client.h"
#include "server/http/tls.h"
#include "server/support/files/descriptor.h"
#include "tests/errors.h"
#include "tests/files.h"
#include "tests/server/http/connections/test_certificate.h"

namespace sconce::server {
namespace {

using namespace std::chrono_literals;
using test::kTestCertificate;
using test::kTestKey;

// The server's end of a connection.
class Peer {
 public:
  Peer(Descriptor socket, const TlsContext* tls) : socket_(std::move(socket)) {
    if (tls) tls_ = std::make_unique<TlsStream>(*tls, socket_.get());
  }
  bool shake_hands() { return !tls_ || tls_->handshake().bytes == 1; }
  // Reads as far as this end, or to the end of the connection.
  std::string read_to(std::string_view end) {
    while (text_.find(end) == std::string::npos && more()) {
    }
    const size_t at = text_.find(end);
    return taken(at == std::string::npos ? text_.size() : at + end.size());
  }
  std::string head() { return read_to("\r\n\r\n"); }
  std::string read(size_t bytes) {
    while (text_.size() < bytes && more()) {
    }
    return taken(std::min(bytes, text_.size()));
  }
  bool ended() { return text_.empty() && !more(); }
  // False: the client has left.
  bool write(std::string_view text) {
    while (!text.empty()) {
      const ssize_t bytes = tls_ ? static_cast<ssize_t>(tls_->write(text.data(), text.size()).bytes)
                                 : ::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL);
      if (bytes <= 0) return false;
      text.remove_prefix(static_cast<size_t>(bytes));
    }
    return true;
  }
  void answer(std::string_view body, const std::string& status = "200 OK") {
    write("HTTP/1.1 " + status + "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body));
  }

 private:
  bool more() {
    char block[4096];
    const ssize_t bytes = tls_ ? static_cast<ssize_t>(tls_->read(block, sizeof block).bytes)
                               : ::recv(socket_.get(), block, sizeof block, 0);
    if (bytes > 0) text_.append(block, static_cast<size_t>(bytes));
    return bytes > 0;
  }
  std::string taken(size_t bytes) {
    std::string text = text_.substr(0, bytes);
    text_.erase(0, bytes);
    return text;
  }

  Descriptor socket_;
  std::unique_ptr<TlsStream> tls_;
  std::string text_;
};

// Runs the script with each connection, one after the other.
class Scripted {
 public:
  using Script = std::function<void(Peer&)>;
  explicit Scripted(Script script, std::shared_ptr<const TlsContext> tls = nullptr)
      : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), script_(std::move(script)), tls_(std::move(tls)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    REQUIRE(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size) == 0);
    REQUIRE(::listen(listener_.get(), 8) == 0);
    REQUIRE(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
    port = ntohs(address.sin_port);
    thread_ = std::thread([this] {
      for (;;) {
        Descriptor accepted(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        if (accepted.get() < 0) return;
        ++connections;
        Peer peer(std::move(accepted), tls_.get());
        if (peer.shake_hands()) script_(peer);
      }
    });
  }
  ~Scripted() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }
  Scripted(const Scripted&) = delete;
  Scripted& operator=(const Scripted&) = delete;

  std::string url(const std::string& target = "/") const { return "http://127.0.0.1:" + std::to_string(port) + target; }
  HttpRequest request(const std::string& target = "/") const {
    HttpRequest request;
    request.url = url(target);
    request.direct = true;
    return request;
  }

  std::atomic<int> connections{0};
  uint16_t port = 0;

 private:
  Descriptor listener_;
  const Script script_;
  const std::shared_ptr<const TlsContext> tls_;
  std::thread thread_;
};

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

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

TEST_CASE("admin client: a download needs a length") {
  std::string head = "HTTP/1.1 200 OK\r\nX-Name: n\r\n";
  Scripted server([&](Peer& peer) {
    peer.head();
    peer.write(head + "\r\nabcdef");
  });
  const AdminClient client(parse_admin_server(server.url("/prefix")), "token", 5s, {});
  std::string came;
  const auto begin = [&](const AnswerHead& found, uint64_t bytes) {
    came = found.field("x-name") + std::to_string(bytes);
  };
  const auto take = [&](std::span<const std::byte> bytes) {
    came.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  Answer answer = client.download("/x", begin, take);
  CHECK(answer.problem == "no answer: its body has no length");
  CHECK(answer.status == 0);
  CHECK(came == "");
  head += "Content-Length: 6\r\n";
  answer = client.download("/x", begin, take);
  CHECK(answer.ok());
  CHECK(came == "n6abcdef");
  head += "Content-Length: 7\r\n";
  answer = client.download("/x", begin, take);
  CHECK(answer.status == 0);
  CHECK(answer.reason() != "");
}

TEST_CASE("admin client: a stream is followed until it ends, or the caller has enough") {
  Scripted server([](Peer& peer) {
    const std::string head = peer.head();
    CHECK(contains(head, "\r\nAuthorization: Bearer token\r\n"));
    CHECK(contains(head, "\r\nAccept: text/event-stream\r\n"));
    peer.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n");
    if (contains(head, "/endless")) peer.ended();
    peer.write("0\r\n\r\n");
  });
  const AdminClient client(parse_admin_server(server.url("")), "token", 5s, {});
  std::string came;
  const auto take = [&](std::string_view text) { came += text; };
  Answer answer = client.follow("/short", take, [] { return true; });
  CHECK(answer.problem == "the stream ended: the server closed the connection");
  CHECK(answer.status == 0);
  CHECK(came == "one");
  came.clear();
  client.follow("/endless", take, [&] { return came.empty(); });
  CHECK(came == "one");
}

}  // namespace sconce::server
