// Transport: the bytes of one connection, plain or over TLS. Nothing here blocks: an operation that must wait reports
// would_block, and poll_events() returns the events to wait for. Used by one thread at a time.
#pragma once

#include <boost/asio/buffer.hpp>
#include <boost/system/error_code.hpp>
#include <memory>
#include <string>

#include "server/http/tls.h"
#include "server/support/files/descriptor.h"

namespace sconce::server::http {

class Transport {
 public:
  using error_code = boost::system::error_code;
  // The buffers still to be sent.
  struct Buffers {
    using value_type = boost::asio::const_buffer;
    using const_iterator = const boost::asio::const_buffer*;
    const_iterator first, last;
    const_iterator begin() const noexcept { return first; }
    const_iterator end() const noexcept { return last; }
  };

  // socket: non-blocking. tls: null for a plain connection.
  Transport(Descriptor socket, const TlsContext* tls);

  int descriptor() const noexcept { return socket_.get(); }  // for polling
  bool encrypted() const noexcept { return tls_ != nullptr; }
  // Returns true when the handshake is complete. Encrypted connections begin with it.
  bool handshake(error_code& ec) noexcept;
  std::string handshake_problem() const { return tls_->problem(); }

  // Number of bytes read or written; at least one unless there is an error. asio::error::eof: the peer has closed its
  // side.
  size_t read_some(char* at, size_t room, error_code& ec) noexcept;
  size_t write_some(const Buffers& buffers, error_code& ec);
  short poll_events() const noexcept;  // events to wait for after would_block
  bool has_unread() noexcept;

  void shutdown_send() noexcept;
  void close() noexcept;

 private:
  size_t outcome(const TlsStream::Step& step, error_code& ec) noexcept;

  Descriptor socket_;
  std::unique_ptr<TlsStream> tls_;
  std::unique_ptr<char[]> record_;  // joins small buffers into one TLS record
  bool writable_ = false;           // whether to wait for POLLOUT
};

}  // namespace sconce::server::http
