// TLS 1.2 and later, by OpenSSL, which is opened for the first context.
//
// A context is what connections share: certificate, key, trusted issuers. It is immutable and thread-safe; connections
// keep the one they started with. A stream is the TLS of one connection over a non-blocking descriptor; one thread at a
// time uses it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

extern "C" {
struct ssl_ctx_st;
struct ssl_st;
}

namespace sconce::server {

class TlsContext {
 public:
  // kIo and kInvalidArgument name a file and what is wrong with it. kUnavailable without OpenSSL. client_ca: each
  // client must show a certificate that one of these issued; empty: none is asked for. sessions: connections resume
  // sessions only of contexts with the same name.
  static std::shared_ptr<const TlsContext> of_server(const std::string& certificate, const std::string& key,
                                                     const std::string& client_ca, std::string_view sessions);
  // ca: empty for the system's. certificate and key: for servers that ask for them; both or none.
  static std::shared_ptr<const TlsContext> of_client(const std::string& ca, const std::string& certificate,
                                                     const std::string& key);

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
  // bytes > 0: done. Otherwise `want` says what the descriptor must be ready for before the call is repeated. If it
  // wants nothing, the connection is over: `closed` if the other side said so, else an error.
  struct Step {
    size_t bytes = 0;
    Want want = Want::kNothing;
    bool closed = false;
  };

  // host: empty for a server; for a client, the name that the server's certificate must have. std::bad_alloc.
  TlsStream(const TlsContext& context, int descriptor, const std::string& host = {});

  Step handshake() noexcept;  // bytes is 1 once it is done
  Step read(void* at, size_t room) noexcept;
  // Takes one record at most. After a step that wants something, pass the same bytes again.
  Step write(const void* at, size_t bytes) noexcept;
  bool has_data() noexcept;     // whether a read returns bytes or the end without waiting
  void finish() noexcept;       // tells the other side that no more comes
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

}  // namespace sconce::server
