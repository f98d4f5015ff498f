// TLS 1.2 and later, by OpenSSL, which is opened when the first context is made.
//
// A context is what connections have in common: certificate, key, whom to trust. Immutable once made, used by any
// thread; connections keep the one they began with. A stream is one connection's TLS over a descriptor that does not
// block; confined to one thread at a time.
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
  // kIo, kInvalidArgument: a file and what is wrong with it. kUnavailable without OpenSSL. Empty client_ca: clients
  // show no certificate; else each must, issued by one of these. sessions: only connections of the same name resume
  // each other's sessions.
  static std::shared_ptr<const TlsContext> of_server(const std::string& certificate, const std::string& key,
                                                     const std::string& client_ca, std::string_view sessions);
  // Empty ca: the system's. certificate and key: what to show to servers that ask; both or none.
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
  // bytes > 0: done. Else want says what the descriptor must become before the same is tried again; nothing: over,
  // which is `closed` if the other side said so, else an error.
  struct Step {
    size_t bytes = 0;
    Want want = Want::kNothing;
    bool closed = false;
  };

  // Of a server, or, with a host, of a client, which the server's certificate must be for. std::bad_alloc.
  TlsStream(const TlsContext& context, int descriptor, const std::string& host = {});

  Step handshake() noexcept;  // bytes: 1 when it is done
  Step read(void* at, size_t room) noexcept;
  // Takes no more than one record; the same bytes again after a step that wants something.
  Step write(const void* at, size_t bytes) noexcept;
  bool has_data() noexcept;     // whether a read has something to say, be it the end
  void finish() noexcept;       // tells the other side that no more comes
  std::string problem() const;  // why the handshake failed

 private:
  struct Free {
    void operator()(ssl_st* stream) const noexcept;
  };
  Step step(int result) noexcept;

  std::unique_ptr<ssl_st, Free> handle_;
  bool failed_ = false;
  std::string_view reason_;
};

}  // namespace sconce::server
