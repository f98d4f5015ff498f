// TLS 1.2 and later through OpenSSL, which is loaded for the first context.
//
// TlsContext: a server's certificate, key and trusted issuers, shared by connections. It is immutable and thread-safe;
// a connection keeps its first context. TlsStream: the TLS state of one connection over a non-blocking descriptor, used
// by one thread at a time. OpenSSL writes to sockets without MSG_NOSIGNAL, so the process must ignore SIGPIPE.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

extern "C" {
struct ssl_ctx_st;
struct ssl_st;
}

namespace sconce::server::http {

class TlsContext {
 public:
  // kIo and kInvalidArgument name a file and its defect. kUnavailable without OpenSSL. client_ca: each client must
  // present a certificate issued by one of these; empty: no client certificate is requested. sessions: TLS sessions
  // resume only between contexts of the same name.
  static std::shared_ptr<const TlsContext> of_server(const std::string& certificate, const std::string& key,
                                                     const std::string& client_ca, std::string_view sessions);
  // Ciphers of TLS 1.2. All ciphers of TLS 1.3 are of this kind.
  static constexpr char kCiphers[] = "ECDHE+AESGCM:ECDHE+CHACHA20";
  // Checks the files of a client, of which each may be empty. The same errors.
  static void check_client(const std::string& ca, const std::string& certificate, const std::string& key);

 private:
  friend class TlsStream;
  struct Free {
    void operator()(ssl_ctx_st* context) const noexcept;
  };
  using Handle = std::unique_ptr<ssl_ctx_st, Free>;
  explicit TlsContext(Handle handle) : handle_(std::move(handle)) {}
  Handle handle_;
};

class TlsStream {
 public:
  enum class Want : int8_t { kNothing, kReadable, kWritable };
  // bytes > 0: done. Otherwise `want` is the event to wait for before the call is repeated. If `want` is kNothing, the
  // connection has ended: `closed` if the peer closed it, else an error.
  struct Step {
    size_t bytes = 0;
    Want want = Want::kNothing;
    bool closed = false;
  };

  TlsStream(const TlsContext& context, int descriptor);  // std::bad_alloc

  Step handshake() noexcept;  // bytes is 1 once the handshake is complete
  Step read(void* at, size_t room) noexcept;
  // Accepts at most one record. If a step returns a `want`, repeat it with the same bytes.
  Step write(const void* at, size_t bytes) noexcept;
  bool has_data() noexcept;     // whether a read returns bytes or the end without waiting
  void finish() noexcept;       // sends the TLS close notification
  std::string problem() const;  // why the handshake failed

 private:
  struct Free {
    void operator()(ssl_st* stream) const noexcept;
  };
  Step step(int result) noexcept;
  template <class Operation>
  Step uninterrupted(const Operation& operation) noexcept;

  std::unique_ptr<ssl_st, Free> handle_;
  bool failed_ = false;
  std::string_view reason_;
};

}  // namespace sconce::server::http
