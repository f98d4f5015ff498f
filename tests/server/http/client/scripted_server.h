// A server on this machine that follows a script, for tests of clients.
#pragma once

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>

#include "server/http/client/http_client.h"
#include "server/http/tls.h"
#include "server/support/files/descriptor.h"

namespace sconce::server::test {

// The server's end of a connection.
class Peer {
 public:
  Peer(Descriptor socket, const http::TlsContext* tls) : socket_(std::move(socket)) {
    if (tls) tls_ = std::make_unique<http::TlsStream>(*tls, socket_.get());
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
  std::unique_ptr<http::TlsStream> tls_;
  std::string text_;
};

// Runs the script with each connection, one after the other.
class Scripted {
 public:
  using Script = std::function<void(Peer&)>;
  explicit Scripted(Script script, std::shared_ptr<const http::TlsContext> tls = nullptr)
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
  http::HttpRequest request(const std::string& target = "/") const {
    http::HttpRequest request;
    request.url = url(target);
    request.direct = true;
    return request;
  }

  std::atomic<int> connections{0};
  uint16_t port = 0;

 private:
  Descriptor listener_;
  const Script script_;
  const std::shared_ptr<const http::TlsContext> tls_;
  std::thread thread_;
};

inline std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

}  // namespace sconce::server::test
