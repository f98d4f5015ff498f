// HttpClient: requests to other servers over HTTP/1.1, through libcurl, which is loaded for the first client.
//
// One request at a time, used by one thread, which also runs the caller's functions. A request leaves its connection
// open for later repeatable requests to the same server. Failures of the server or the network are returned in Answer,
// not thrown. Redirects are not followed. OpenSSL writes to sockets without MSG_NOSIGNAL, so a process that uses https
// must ignore SIGPIPE.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "server/http/client/answer_head.h"

namespace sconce::server::http {

// For https: files in PEM, which each connection reads.
struct ClientTls {
  std::string ca;                // trusted instead of the system's; empty: those of SSL_CERT_FILE, else the system's
  std::string certificate, key;  // for servers that request them; both or none
  std::string ciphers;           // of TLS 1.2; empty: libcurl's
};
// The same files with the server's ciphers. kIo and kInvalidArgument name a file and its defect; kUnavailable without
// OpenSSL.
ClientTls checked_tls(const std::string& ca, const std::string& certificate, const std::string& key);

struct HttpRequest {
  std::string url;
  std::string method;               // empty: GET, or POST with a body
  std::vector<std::string> fields;  // "Name: value"
  std::string body;
  std::string address;      // to connect to; empty: resolve the URL's host
  bool direct = false;      // without the proxies of the environment
  bool netrc = false;       // ~/.netrc may have credentials for the host
  bool repeatable = false;  // may use an open connection, and be sent again if the server has just closed it
};

struct HttpLimits {
  std::chrono::milliseconds connect{10'000};  // for the name, the connection and TLS
  std::chrono::milliseconds silence{};        // the longest time without a byte in either direction; 0: no limit
  std::chrono::milliseconds slow{};           // the longest time with less than kSlowest bytes per second; 0: no limit
};

struct Answer : AnswerHead {
  std::string body;  // the whole body; with a sink, the beginning of an error's text
  // Why there is no answer, or why it ended early, and so has no status: "cannot connect: Connection refused".
  std::string problem;
  std::string redirect;    // target of a redirect
  bool temporary = false;  // a problem that a retry may not meet
  bool delivered = false;  // the whole request was sent; if no answer came, the server may or may not have executed it
  bool ok() const noexcept { return status >= 200 && status < 300; }
  // "404: no such model", or the problem.
  std::string reason() const;
};

// Receives an answer while it arrives. Exceptions end the request and are passed on. false: stop reading, with the
// problem "stopped".
struct AnswerSink {
  // Called with the header of a 200 or 206. May be empty.
  std::function<bool(const Answer&)> head;
  // The next bytes of its body.
  std::function<bool(std::span<const std::byte>)> body;
};

class HttpClient {
 public:
  static constexpr long kSlowest = 1024;
  static constexpr size_t kMaxBody = size_t{64} << 20;      // of an answer without a sink
  static constexpr size_t kMaxErrorText = size_t{8} << 10;  // of an error with a sink
  // Called every 50 ms while waiting. Exceptions end the request and are passed on; false ends it with the problem
  // "stopped".
  using Check = std::function<bool()>;

  explicit HttpClient(ClientTls tls = {}, HttpLimits limits = {});  // kUnavailable without libcurl
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  Answer ask(const HttpRequest& request, const Check& check = {}, const AnswerSink& sink = {});

  // begin() starts a POST with a body of `bytes` bytes, once the server has sent "100 Continue" or one second has
  // passed; send() sends the next piece of the body. False: the server accepts no more bytes, or cannot be reached;
  // answer() has the reason.
  bool begin(const HttpRequest& request, uint64_t bytes, const Check& check);
  bool send(std::span<const std::byte> piece);
  // Call this once, after begin(). silence: as in HttpLimits.
  Answer answer(std::chrono::milliseconds silence);

 private:
  struct Handles;
  class Exchange;
  Handles& handles();

  const ClientTls tls_;
  const HttpLimits limits_;
  std::unique_ptr<Handles> handles_;
  std::unique_ptr<Exchange> exchange_;  // from begin() to answer()
};

}  // namespace sconce::server::http
